//! What became of a file.

use std::io::{self, Read, Write};

use super::wire::{self, Broken};
use crate::extract::{Extracted, Heading, Limits, Part, PartKind, Refusal, floor_boundary, short};
use crate::limits::{KEYWORDS_MAX, TITLE_BYTES_MAX};
use crate::types::State;

const MAGIC: &[u8; 4] = b"SXR1";

/// Bytes of a reason: one sentence.
const REASON_MAX: usize = 500;
/// Bytes of a language tag or the name of a charset.
const TAG_MAX: usize = 64;

/// An answer: the text, or why there is none.
pub(crate) type Reply = Result<Extracted, Refusal>;

/// Writes the answer, brought within the bounds that the other side checks.
pub(crate) fn write_reply(to: &mut impl Write, number: u64, reply: Reply, limits: &Limits) -> io::Result<()> {
    to.write_all(MAGIC)?;
    to.write_all(&number.to_le_bytes())?;
    match reply {
        Ok(extracted) => {
            to.write_all(&[0])?;
            put_extracted(to, &bounded(extracted, limits))?;
        }
        Err(refusal) => {
            to.write_all(&[1, refusal.state.number()])?;
            wire::put_text(to, &short(&refusal.reason, REASON_MAX))?;
        }
    }
    to.flush()
}

/// An extractor that keeps a bound less well than the protocol must not make its file look like an attack.
fn bounded(mut e: Extracted, limits: &Limits) -> Extracted {
    let end = floor_boundary(&e.text, limits.text_bytes_max);
    if end < e.text.len() {
        e.text.truncate(end);
        e.in_file = false;
        e.cut = Some("its text is longer than what is read".to_owned());
    }
    for text in [&mut e.title, &mut e.author] {
        *text = text.take().map(|t| short(&t, TITLE_BYTES_MAX)).filter(|t| !t.is_empty());
    }
    e.language = e.language.map(|t| short(&t, TAG_MAX)).filter(|t| !t.is_empty());
    e.cut = e.cut.map(|t| short(&t, REASON_MAX)).filter(|t| !t.is_empty());
    e.keywords = e.keywords.iter().map(|k| short(k, TITLE_BYTES_MAX)).filter(|k| !k.is_empty()).collect();
    e.keywords.truncate(KEYWORDS_MAX);
    for heading in &mut e.headings {
        heading.start = floor_boundary(&e.text, heading.start);
        heading.level = heading.level.max(1);
        heading.text = short(&heading.text, TITLE_BYTES_MAX);
    }
    e.headings.sort_by_key(|h| h.start);
    e.headings.truncate(limits.headings_max);
    for part in &mut e.parts {
        part.start = floor_boundary(&e.text, part.start);
        part.name = part.name.take().map(|n| short(&n, TITLE_BYTES_MAX)).filter(|n| !n.is_empty());
    }
    e.parts.sort_by_key(|p| p.start);
    e.parts.truncate(limits.parts_max);
    e
}

fn put_extracted(to: &mut impl Write, e: &Extracted) -> io::Result<()> {
    to.write_all(&[u8::from(e.in_file)])?;
    for text in [&e.title, &e.author, &e.language] {
        wire::put_maybe_text(to, text.as_deref())?;
    }
    match e.dated {
        None => to.write_all(&[0])?,
        Some(time) => {
            to.write_all(&[1])?;
            to.write_all(&time.to_le_bytes())?;
        }
    }
    wire::put_text(to, e.charset)?;
    wire::put_maybe_text(to, e.cut.as_deref())?;
    wire::put_count(to, e.keywords.len())?;
    for keyword in &e.keywords {
        wire::put_text(to, keyword)?;
    }
    wire::put_count(to, e.headings.len())?;
    for heading in &e.headings {
        to.write_all(&(heading.start as u64).to_le_bytes())?;
        to.write_all(&[heading.level])?;
        wire::put_text(to, &heading.text)?;
    }
    wire::put_count(to, e.parts.len())?;
    for part in &e.parts {
        to.write_all(&(part.start as u64).to_le_bytes())?;
        to.write_all(&[part.kind.stored()])?;
        wire::put_number(to, part.number)?;
        wire::put_maybe_text(to, part.name.as_deref())?;
    }
    to.write_all(&(e.text.len() as u64).to_le_bytes())?;
    to.write_all(e.text.as_bytes())
}

/// Reads an answer to the request of that number, and checks everything about it.
pub(crate) fn read_reply(from: &mut impl Read, number: u64, limits: &Limits) -> Result<Reply, Broken> {
    if &wire::array(from)? != MAGIC {
        return Err(Broken::Bad("it is no reply"));
    }
    if wire::u64(from)? != number {
        return Err(Broken::Bad("it answers another request"));
    }
    match wire::u8(from)? {
        0 => extracted(from, limits).map(Ok),
        1 => refusal(from).map(Err),
        _ => Err(Broken::Bad("it is neither a text nor a refusal")),
    }
}

fn refusal(from: &mut impl Read) -> Result<Refusal, Broken> {
    let state = wire::u8(from)?;
    let state = State::ALL.into_iter().find(|s| s.number() == state);
    let state = state.filter(|s| !matches!(s, State::Indexed | State::Pending));
    let state = state.ok_or(Broken::Bad("a refusal has a state that is none"))?;
    Ok(Refusal { state, reason: short(&wire::text(from, REASON_MAX)?, REASON_MAX) })
}

fn extracted(from: &mut impl Read, limits: &Limits) -> Result<Extracted, Broken> {
    let in_file = wire::flag(from)?;
    let title = wire::maybe_text(from, TITLE_BYTES_MAX)?;
    let author = wire::maybe_text(from, TITLE_BYTES_MAX)?;
    let language = wire::maybe_text(from, TAG_MAX)?;
    let dated = if wire::flag(from)? { Some(wire::i64(from)?) } else { None };
    let charset = charset(&wire::text(from, TAG_MAX)?);
    let cut = wire::maybe_text(from, REASON_MAX)?;
    let count = wire::count(from, KEYWORDS_MAX, "too many keywords")?;
    let keywords = (0..count).map(|_| wire::text(from, TITLE_BYTES_MAX)).collect::<Result<_, _>>()?;
    let headings = headings(from, limits)?;
    let parts = parts(from, limits)?;
    let length = wire::size(from, limits.text_bytes_max, "a text is longer than it may be")?;
    let text = wire::utf8(wire::bytes(from, length)?)?;
    check_places(&text, headings.iter().map(|h| h.start))?;
    check_places(&text, parts.iter().map(|p| p.start))?;
    Ok(Extracted { text, in_file, title, keywords, author, dated, language, headings, parts, charset, cut })
}

fn headings(from: &mut impl Read, limits: &Limits) -> Result<Vec<Heading>, Broken> {
    let count = wire::count(from, limits.headings_max, "too many headings")?;
    let mut headings = Vec::new();
    for _ in 0..count {
        let start = wire::size(from, limits.text_bytes_max, "a heading stands behind the text")?;
        let level = wire::u8(from)?;
        let text = wire::text(from, TITLE_BYTES_MAX)?;
        if level == 0 {
            return Err(Broken::Bad("a heading has no level"));
        }
        headings.push(Heading { start, level, text });
    }
    Ok(headings)
}

fn parts(from: &mut impl Read, limits: &Limits) -> Result<Vec<Part>, Broken> {
    let count = wire::count(from, limits.parts_max, "too many parts")?;
    let mut parts = Vec::new();
    for _ in 0..count {
        let start = wire::size(from, limits.text_bytes_max, "a part stands behind the text")?;
        let kind = wire::u8(from)?;
        let kind = PartKind::from_stored(i64::from(kind)).ok_or(Broken::Bad("a part is of no known kind"))?;
        let number = wire::u32(from)?;
        let name = wire::maybe_text(from, TITLE_BYTES_MAX)?;
        parts.push(Part { start, kind, number, name });
    }
    Ok(parts)
}

/// Places must rise and stand at characters.
fn check_places(text: &str, places: impl Iterator<Item = usize>) -> Result<(), Broken> {
    let mut before = 0;
    for place in places {
        if place < before {
            return Err(Broken::Bad("places do not rise"));
        }
        if !text.is_char_boundary(place) {
            return Err(Broken::Bad("a place is inside a character or behind the text"));
        }
        before = place;
    }
    Ok(())
}

/// The name as it stands in the library of charsets.
fn charset(name: &str) -> &'static str {
    encoding_rs::Encoding::for_label(name.as_bytes()).map_or("", encoding_rs::Encoding::name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Rng;

    fn sample() -> Extracted {
        Extracted {
            text: "Erste Seite\nzweite Säite\n".to_owned(),
            title: Some("Bericht".to_owned()),
            author: Some("A. Nonym".to_owned()),
            dated: Some(-5),
            language: Some("de".to_owned()),
            keywords: vec!["k".to_owned()],
            headings: vec![Heading { start: 12, level: 2, text: "zweite".to_owned() }],
            parts: vec![
                Part { start: 0, kind: PartKind::Page, number: 1, name: None },
                Part { start: 12, kind: PartKind::File, number: 2, name: Some("b".to_owned()) },
            ],
            charset: "UTF-8",
            cut: Some("page 3 is damaged".to_owned()),
            in_file: false,
        }
    }

    fn written(reply: Reply) -> Vec<u8> {
        let mut out = Vec::new();
        write_reply(&mut out, 3, reply, &Limits::default()).unwrap();
        out
    }

    fn read(bytes: &[u8]) -> Result<Reply, Broken> {
        read_reply(&mut &bytes[..], 3, &Limits::default())
    }

    #[test]
    fn a_reply_comes_as_it_was_sent() {
        assert_eq!(read(&written(Ok(sample()))).unwrap(), Ok(sample()));
        let refusal = Refusal { state: State::Locked, reason: "it needs a password".to_owned() };
        assert_eq!(read(&written(Err(refusal.clone()))).unwrap(), Err(refusal));
    }

    #[test]
    fn what_breaks_the_bounds_is_brought_within_them_by_the_writer() {
        let mut wild = sample();
        wild.headings.insert(0, Heading { start: 21, level: 0, text: "x".repeat(1000) });
        wild.parts.push(Part { start: 1 << 40, kind: PartKind::Page, number: 9, name: Some("n".repeat(5000)) });
        wild.title = Some("t ".repeat(1000));
        let back = read(&written(Ok(wild))).unwrap().unwrap();
        // 21 lies inside the two bytes of `ä`.
        assert_eq!((back.headings[1].start, back.headings[1].level, back.headings[1].text.len()), (20, 1, 300));
        assert_eq!((back.parts[2].start, back.title.unwrap().len()), (back.text.len(), 299));
    }

    #[test]
    fn a_reply_that_lies_is_refused() {
        let whole = written(Ok(sample()));
        for end in 0..whole.len() {
            assert!(read(&whole[..end]).is_err(), "cut at {end}");
        }
        assert!(read_reply(&mut &whole[..], 4, &Limits::default()).is_err(), "another request's answer");
        let tight = Limits { text_bytes_max: 4, ..Limits::default() };
        assert!(read_reply(&mut &whole[..], 3, &tight).is_err(), "more text than allowed");
        // Without the writer's care.
        let raw = |e: &Extracted| {
            let mut out = [&MAGIC[..], &3_u64.to_le_bytes(), &[0]].concat();
            put_extracted(&mut out, e).unwrap();
            read(&out)
        };
        let with = |change: &dyn Fn(&mut Extracted)| {
            let mut e = sample();
            change(&mut e);
            raw(&e)
        };
        assert!(with(&|_| {}).is_ok());
        assert!(with(&|e| e.headings[0].start = 21).is_err(), "inside a character");
        assert!(with(&|e| e.headings[0].start = 4000).is_err(), "behind the text");
        assert!(with(&|e| e.parts.reverse()).is_err(), "places that fall");
        assert!(with(&|e| e.title = Some("x".repeat(301))).is_err(), "a long title");
        for state in [State::Indexed.number(), State::Pending.number(), 99] {
            let mut out = [&MAGIC[..], &3_u64.to_le_bytes(), &[1, state]].concat();
            wire::put_text(&mut out, "r").unwrap();
            assert!(read(&out).is_err(), "state {state}");
        }
    }

    #[test]
    fn no_garbage_makes_it_panic_or_ask_for_much_memory() {
        let mut rng = Rng::new(11);
        let whole = written(Ok(sample()));
        for _ in 0..20_000 {
            let mut bytes = whole.clone();
            for _ in 0..=rng.below(4) {
                let at = rng.below(bytes.len());
                bytes[at] = rng.next() as u8;
            }
            bytes.truncate(rng.below(bytes.len() + 1).max(rng.below(bytes.len() + 1)));
            if let Ok(Ok(e)) = read(&bytes) {
                assert!(e.headings.iter().all(|h| e.text.is_char_boundary(h.start)));
            }
        }
    }
}
