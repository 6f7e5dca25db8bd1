//! Streams of a PDF, unpacked within a bound.

use std::borrow::Cow;
use std::io::Read;

use hayro_syntax::Filter;
use hayro_syntax::object::Stream;

/// Bytes that one stream may unpack to. The text of one page, one font or one map of characters is far below it; a
/// few kilobytes that unpack to gigabytes are not.
const STREAM_BYTES_MAX: u64 = 48 << 20;

/// Filters in a row. Real files have one or two.
const FILTERS_MAX: usize = 4;

/// The stream's data, or nothing where it is an image, broken, or unpacks to more than the bound.
pub(super) fn unpack<'a>(stream: &Stream<'a>) -> Option<Cow<'a, [u8]>> {
    fits(stream).then(|| stream.decoded_data().ok()).flatten()
}

/// Whether the stream unpacks to no more than the bound.
pub(super) fn fits(stream: &Stream<'_>) -> bool {
    let filters = stream.filters();
    if filters.len() > FILTERS_MAX {
        return false;
    }
    let raw = stream.raw_data();
    let growth: u64 = filters.iter().map(growth_max).fold(1, u64::saturating_mul);
    if (raw.len() as u64).saturating_mul(growth) <= STREAM_BYTES_MAX {
        return true;
    }
    match filters.as_slice() {
        [Filter::FlateDecode] => flate_bytes(&raw) <= STREAM_BYTES_MAX,
        [Filter::LzwDecode] => lzw_bytes(&raw) <= STREAM_BYTES_MAX,
        // Text in front of the packed data only makes it smaller; two packers in a row are a bomb.
        _ => filters.iter().filter(|f| growth_max(f) > 1).count() <= 1 && raw.len() as u64 <= STREAM_BYTES_MAX / 64,
    }
}

/// The most that one byte can become.
fn growth_max(filter: &Filter) -> u64 {
    match filter {
        Filter::FlateDecode => 1032,
        Filter::LzwDecode => 2731,
        Filter::RunLengthDecode => 64,
        _ => 1,
    }
}

/// Unpacked bytes, counted without being kept, up to one over the bound.
fn flate_bytes(raw: &[u8]) -> u64 {
    let mut reader = flate2::read::ZlibDecoder::new(raw).take(STREAM_BYTES_MAX + 1);
    let (mut count, mut buffer) = (0, [0; 32 << 10]);
    loop {
        match reader.read(&mut buffer) {
            // What follows a fault is not unpacked by the library either, or only by a few bytes.
            Ok(0) | Err(_) => return count,
            Ok(n) => count += n as u64,
        }
    }
}

/// Unpacked bytes of LZW data: the sum of the lengths of the strings that its codes stand for.
fn lzw_bytes(raw: &[u8]) -> u64 {
    let mut lengths: Vec<u64> = vec![1; 258];
    let (mut total, mut previous, mut width) = (0_u64, 0_u64, 9_u32);
    let (mut bits, mut held) = (0_u32, 0_u32);
    for &byte in raw {
        bits = bits << 8 | u32::from(byte);
        held += 8;
        if held < width {
            continue;
        }
        held -= width;
        let code = (bits >> held & ((1 << width) - 1)) as usize;
        bits &= (1 << held) - 1;
        match code {
            256 => {
                lengths.truncate(258);
                (previous, width) = (0, 9);
                continue;
            }
            257 => break,
            _ => {}
        }
        let length = lengths.get(code).copied().unwrap_or(previous + 1);
        total = total.saturating_add(length);
        if previous > 0 && lengths.len() < 4096 {
            lengths.push(previous + 1);
        }
        previous = length;
        width = match lengths.len() {
            0..=510 => 9,
            511..=1022 => 10,
            1023..=2046 => 11,
            _ => 12,
        };
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn flate_is_counted_and_stops_at_the_bound() {
        let mut packer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        for _ in 0..100 {
            packer.write_all(&[b' '; 1 << 20]).unwrap();
        }
        assert_eq!(flate_bytes(&packer.finish().unwrap()), STREAM_BYTES_MAX + 1);
    }

    #[test]
    fn lzw_is_counted() {
        // The example of the PDF specification: ten bytes.
        assert_eq!(lzw_bytes(&[0x80, 0x0B, 0x60, 0x50, 0x22, 0x0C, 0x0C, 0x85, 0x01]), 10);
    }
}
