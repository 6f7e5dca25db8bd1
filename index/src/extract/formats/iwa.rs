//! Records of Apple's newer documents (IWA): packed by Snappy, then in Protocol Buffers. Only those that hold the text of
//! a page, a shape or a table are read; the others are passed over by their length.

/// Bytes of one member, unpacked.
const UNPACKED_BYTES_MAX: usize = 64 << 20;

/// The record of a text, and that of a table's strings.
const STORAGE: u64 = 2001;
const STRINGS: u64 = 6005;

/// Texts kept of one member.
const TEXTS_MAX: usize = 100_000;

/// The texts in a member. What cannot be read ends the list.
pub(crate) fn texts(bytes: &[u8]) -> Vec<String> {
    let unpacked = unpack(bytes).unwrap_or_default();
    let (mut rest, mut out) = (&unpacked[..], Vec::new());
    while !rest.is_empty() && out.len() < TEXTS_MAX {
        if record(&mut rest, &mut out).is_none() {
            break;
        }
    }
    out
}

/// Takes one record: its head, then the payloads that the head tells of.
fn record(rest: &mut &[u8], out: &mut Vec<String>) -> Option<()> {
    let len = varint(rest)?;
    let head = take(rest, len)?;
    for info in fields(head).filter(|f| f.number == 2) {
        let (mut kind, mut len) = (0, 0);
        for field in fields(info.bytes) {
            match field.number {
                1 => kind = field.value,
                3 => len = field.value,
                _ => {}
            }
        }
        let payload = take(rest, len)?;
        match kind {
            STORAGE => out.extend(fields(payload).filter(|f| f.number == 3).filter_map(|f| text(f.bytes))),
            STRINGS => {
                let entries = fields(payload).filter(|f| f.number == 3);
                let strings = entries.filter_map(|entry| fields(entry.bytes).find(|f| f.number == 3 && f.is_bytes));
                out.extend(strings.filter_map(|f| text(f.bytes)));
            }
            _ => {}
        }
    }
    Some(())
}

/// A text as it is seen: line breaks of three kinds, and marks where pictures stand.
fn text(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    let shown =
        text.chars().filter(|c| *c != '\u{FFFC}').map(|c| if c.is_control() || c == '\u{2028}' { '\n' } else { c });
    let shown: String = shown.collect();
    let shown = shown.trim();
    (!shown.is_empty()).then(|| shown.to_owned())
}

struct Field<'a> {
    number: u64,
    is_bytes: bool,
    value: u64,
    bytes: &'a [u8],
}

/// The fields of a message, as far as they can be read.
fn fields(message: &[u8]) -> impl Iterator<Item = Field<'_>> {
    let mut rest = message;
    std::iter::from_fn(move || {
        let key = varint(&mut rest)?;
        let mut field = Field { number: key >> 3, is_bytes: false, value: 0, bytes: &[] };
        match key & 7 {
            0 => field.value = varint(&mut rest)?,
            1 => field.bytes = take(&mut rest, 8)?,
            2 => {
                let len = varint(&mut rest)?;
                field.bytes = take(&mut rest, len)?;
                field.is_bytes = true;
            }
            5 => field.bytes = take(&mut rest, 4)?,
            _ => return None,
        }
        Some(field)
    })
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, more) = rest.split_first()?;
        *rest = more;
        value |= u64::from(byte & 0x7F).checked_shl(shift)?;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn take<'a>(rest: &mut &'a [u8], len: u64) -> Option<&'a [u8]> {
    let (taken, more) = rest.split_at_checked(usize::try_from(len).ok()?)?;
    *rest = more;
    Some(taken)
}

/// Unpacks the chunks: each has a zero, its length in three bytes, and a block of Snappy without its checksums.
fn unpack(bytes: &[u8]) -> Option<Vec<u8>> {
    let (mut rest, mut out) = (bytes, Vec::new());
    while !rest.is_empty() {
        let head = take(&mut rest, 4)?;
        if head[0] != 0 {
            return None;
        }
        let len = u64::from(head[1]) | u64::from(head[2]) << 8 | u64::from(head[3]) << 16;
        snappy(take(&mut rest, len)?, &mut out)?;
    }
    Some(out)
}

/// One block of Snappy: literals, and copies of what was unpacked before.
fn snappy(block: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (mut rest, start) = (block, out.len());
    let size = usize::try_from(varint(&mut rest)?).ok()?;
    while let Some((&tag, more)) = rest.split_first() {
        rest = more;
        let mut number = |bytes: u64| {
            let taken = take(&mut rest, bytes)?;
            Some(taken.iter().rev().fold(0_usize, |n, &b| n << 8 | usize::from(b)))
        };
        let high = usize::from(tag >> 2);
        let (len, back) = match tag & 3 {
            0 => {
                let len = if high < 60 { high } else { number(high as u64 - 59)? } + 1;
                let literal = take(&mut rest, len as u64)?;
                if out.len() + len > UNPACKED_BYTES_MAX {
                    return None;
                }
                out.extend_from_slice(literal);
                continue;
            }
            1 => ((high & 7) + 4, (high >> 3) << 8 | number(1)?),
            2 => (high + 1, number(2)?),
            _ => (high + 1, number(4)?),
        };
        let from = out.len().checked_sub(back).filter(|&from| back > 0 && from >= start)?;
        if out.len() + len > UNPACKED_BYTES_MAX {
            return None;
        }
        for i in from..from + len {
            out.push(out[i]);
        }
    }
    (out.len() - start == size).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A member with one record that holds a text, packed as literals and one copy.
    fn member() -> Vec<u8> {
        let payload = b"\x1A\x0Aabcabcabc!";
        let info = [&[0x08, 0xD1, 0x0F, 0x18, payload.len() as u8][..]].concat();
        let head = [&[0x08, 1, 0x12, info.len() as u8][..], &info].concat();
        let before = [&[head.len() as u8][..], &head, b"\x1A\x0Aabc"].concat();
        let size = before.len() + 7;
        // A copy of six bytes from three back, then a literal.
        let block = [&[size as u8, ((before.len() - 1) << 2) as u8][..], &before, &[(2 << 2) | 1, 3, 0, b'!']].concat();
        [&[0, block.len() as u8, 0, 0][..], &block].concat()
    }

    #[test]
    fn texts_are_found() {
        assert_eq!(texts(&member()), ["abcabcabc!"]);
    }

    #[test]
    fn anything_is_survived() {
        let good = member();
        for at in 0..good.len() {
            let _ = texts(&good[..at]);
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[at] ^= 1 << bit;
                let _ = texts(&bad);
            }
        }
    }
}
