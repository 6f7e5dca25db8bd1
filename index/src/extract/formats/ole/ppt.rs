//! PPT: the text of PowerPoint 97 to 2003, slide by slide in the order shown, with its notes and comments.
//!
//! A file holds every slide as it was at each save; which one counts says a directory at the end. The text of the
//! outline stands with the list of slides, that of other boxes in the drawing of each slide.

use std::collections::HashMap;

use super::rc4::Key;
use super::{Compound, place_at, summary, u16_at, u32_at, utf16};
use crate::extract::draft::{Draft, Gap};
use crate::extract::{Context, Extracted, PartKind, Refusal};

/// Saves that are followed back; each adds an entry to the directory.
const SAVES_MAX: usize = 1000;

/// Objects of the directory.
const OBJECTS_MAX: usize = 200_000;

/// Records of one slide that are gone through.
const RECORDS_MAX: usize = 200_000;

const USER_EDIT: u16 = 4085;
const PERSIST_DIRECTORY: u16 = 6002;
const DOCUMENT: u16 = 1000;
const SLIDE: u16 = 1006;
const SLIDE_ATOM: u16 = 1007;
const NOTES: u16 = 1008;
const NOTES_ATOM: u16 = 1009;
const SLIDE_LIST: u16 = 4080;
const SLIDE_PERSIST: u16 = 1011;
const TEXT_HEADER: u16 = 3999;
const TEXT_WIDE: u16 = 4000;
const TEXT_NARROW: u16 = 4008;
const TEXT_OF_OUTLINE: u16 = 3998;
const STRING: u16 = 4026;
const COMMENT: u16 = 12_000;
const HEADERS_FOOTERS: u16 = 4057;
const PROGRAM_TAGS: u16 = 5000;

/// A record: its kind, what it says besides, and its bytes.
#[derive(Debug, Clone, Copy)]
struct Record<'a> {
    kind: u16,
    instance: u16,
    has_records: bool,
    data: &'a [u8],
}

fn record_at(bytes: &[u8], at: usize) -> Option<Record<'_>> {
    let (flags, kind, length) = (u16_at(bytes, at)?, u16_at(bytes, at + 2)?, place_at(bytes, at + 4)?);
    let rest = bytes.get(at + 8..)?;
    // The last one may be cut.
    let data = rest.get(..length).unwrap_or(rest);
    Some(Record { kind, instance: flags >> 4, has_records: flags & 0xF == 0xF, data })
}

fn records(bytes: &[u8]) -> impl Iterator<Item = Record<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let record = record_at(bytes, at)?;
        at += 8 + record.data.len();
        Some(record)
    })
}

/// Goes through a record and all within it, in order, on a list instead of the stack.
fn walk<'a>(bytes: &'a [u8], mut each: impl FnMut(Record<'a>) -> bool) {
    let mut stack = vec![(bytes, 0)];
    let mut count = 0;
    while let Some((bytes, at)) = stack.pop() {
        let Some(record) = record_at(bytes, at) else { continue };
        count += 1;
        if count > RECORDS_MAX {
            return;
        }
        stack.push((bytes, at + 8 + record.data.len()));
        if each(record) && record.has_records {
            stack.push((record.data, 0));
        }
    }
}

/// Reads the slides, or says that they need a password.
pub(crate) fn extract(bytes: &[u8], context: &Context<'_>) -> Result<Extracted, Refusal> {
    let mut file = Compound::open(bytes)?;
    let broken = || Refusal::failed("its slides cannot be found: the file is damaged");
    let stream = file.read("PowerPoint Document").ok_or_else(broken)?;
    let user = file.read("Current User").unwrap_or_default();
    let objects = Objects::of(&stream, place_at(&user, 16), context.passwords)?;
    let mut draft = Draft::new(context.limits);
    summary::read(&mut file, draft.about());
    let document = objects.all().find(|object| record_at(object, 0).is_some_and(|r| r.kind == DOCUMENT));
    match document.as_deref().and_then(|document| record_at(document, 0)) {
        Some(document) => slides(document.data, &objects, &mut draft),
        // Without its directory the file is read as it comes.
        None => box_texts(&stream, &[], &mut draft),
    }
    draft.finish()
}

/// The objects of the file by their numbers.
struct Objects<'a> {
    stream: &'a [u8],
    places: HashMap<u32, usize>,
    key: Option<Key>,
}

impl<'a> Objects<'a> {
    fn of(stream: &'a [u8], last_save: Option<usize>, passwords: &[String]) -> Result<Self, Refusal> {
        let mut out = Self { stream, places: HashMap::new(), key: None };
        let mut save = last_save.filter(|&at| record_at(stream, at).is_some_and(|r| r.kind == USER_EDIT));
        let mut lock = None;
        for _ in 0..SAVES_MAX {
            let Some(edit) = save.and_then(|at| record_at(stream, at)).filter(|r| r.kind == USER_EDIT) else { break };
            if let Some(directory) = place_at(edit.data, 12).and_then(|at| record_at(stream, at)) {
                out.add(directory);
            }
            lock = lock.or_else(|| u32_at(edit.data, 28).filter(|&id| id != 0));
            save = place_at(edit.data, 8).filter(|&at| at != 0);
        }
        if let Some(lock) = lock {
            let info = out.places.get(&lock).and_then(|&at| record_at(stream, at));
            let key = info.and_then(|info| Key::find(info.data, passwords));
            out.key = Some(key.ok_or_else(Refusal::locked)?);
        }
        Ok(out)
    }

    /// What an earlier save says of an object does not count.
    fn add(&mut self, directory: Record<'_>) {
        if directory.kind != PERSIST_DIRECTORY {
            return;
        }
        let mut at = 0;
        while let Some(run) = u32_at(directory.data, at) {
            let (first, count) = (run & 0xF_FFFF, run >> 20);
            at += 4;
            for id in first..first.saturating_add(count) {
                let Some(place) = place_at(directory.data, at) else { return };
                at += 4;
                if self.places.len() < OBJECTS_MAX {
                    self.places.entry(id).or_insert(place);
                }
            }
        }
    }

    fn get(&self, id: u32) -> Option<std::borrow::Cow<'a, [u8]>> {
        let bytes = self.stream.get(*self.places.get(&id)?..)?;
        let Some(key) = &self.key else {
            let length = 8 + record_at(bytes, 0)?.data.len();
            return Some(bytes.get(..length)?.into());
        };
        let head = key.open(id, 0, bytes.get(..8)?);
        let length = place_at(&head, 4)?.saturating_add(8).min(bytes.len());
        Some(key.open(id, 0, &bytes[..length]).into())
    }

    fn all(&self) -> impl Iterator<Item = std::borrow::Cow<'a, [u8]>> + '_ {
        let mut ids: Vec<u32> = self.places.keys().copied().collect();
        ids.sort_unstable();
        ids.into_iter().filter_map(|id| self.get(id))
    }
}

/// A slide as the list of the document names it.
#[derive(Default)]
struct Entry {
    object: u32,
    id: u32,
    /// Its texts of the outline, with their kinds: 0 and 6 are titles.
    texts: Vec<(u32, String)>,
}

fn slides(document: &[u8], objects: &Objects<'_>, draft: &mut Draft<'_>) {
    let list = |instance| {
        let list = records(document).find(|r| r.kind == SLIDE_LIST && r.instance == instance);
        list.map(|list| entries(list.data)).unwrap_or_default()
    };
    let mut notes: HashMap<u32, Vec<u8>> = HashMap::new();
    for entry in list(2) {
        let Some(bytes) = objects.get(entry.object) else { continue };
        let slide = record_at(&bytes, 0).filter(|r| r.kind == NOTES);
        let slide = slide.and_then(|r| records(r.data).find(|r| r.kind == NOTES_ATOM)).and_then(|r| u32_at(r.data, 0));
        if let Some(slide) = slide {
            notes.insert(slide, bytes.into_owned());
        }
    }
    for (number, entry) in (1..).zip(list(0)) {
        draft.part(PartKind::Slide, number, None);
        let slide = objects.get(entry.object);
        let slide = slide.as_deref().and_then(|bytes| record_at(bytes, 0)).filter(|r| r.kind == SLIDE);
        match slide {
            Some(slide) => box_texts(slide.data, &entry.texts, draft),
            None => entry.texts.iter().for_each(|(kind, text)| write(text, is_title(*kind), draft)),
        }
        if let Some(notes) = notes.get(&entry.id).and_then(|bytes| record_at(bytes, 0)) {
            draft.separate(Gap::Blank);
            box_texts(notes.data, &[], draft);
        }
    }
}

fn entries(list: &[u8]) -> Vec<Entry> {
    let mut out: Vec<Entry> = Vec::new();
    let mut kind = 0;
    for record in records(list).take(RECORDS_MAX) {
        if record.kind == SLIDE_PERSIST {
            let (object, id) = (u32_at(record.data, 0).unwrap_or(0), u32_at(record.data, 12).unwrap_or(0));
            out.push(Entry { object, id, texts: Vec::new() });
        }
        let Some(entry) = out.last_mut() else { continue };
        match record.kind {
            TEXT_HEADER => {
                kind = u32_at(record.data, 0).unwrap_or(0);
                entry.texts.push((kind, String::new()));
            }
            TEXT_WIDE | TEXT_NARROW => match entry.texts.last_mut() {
                Some((_, last)) if last.is_empty() => *last = text_of(record),
                _ => entry.texts.push((kind, text_of(record))),
            },
            _ => {}
        }
    }
    out
}

/// The texts of a slide's boxes in the order drawn; those that stand in the outline are taken from there.
fn box_texts(slide: &[u8], outline: &[(u32, String)], draft: &mut Draft<'_>) {
    let mut kind = u32::MAX;
    let mut shown = vec![false; outline.len()];
    let mut texts: Vec<(bool, String)> = Vec::new();
    let mut in_comment = 0;
    walk(slide, |record| {
        match record.kind {
            TEXT_HEADER => kind = u32_at(record.data, 0).unwrap_or(u32::MAX),
            TEXT_WIDE | TEXT_NARROW => texts.push((is_title(kind), text_of(record))),
            TEXT_OF_OUTLINE => {
                let index = place_at(record.data, 0).unwrap_or(usize::MAX);
                if let Some((kind, text)) = outline.get(index).filter(|_| !shown[index]) {
                    shown[index] = true;
                    texts.push((is_title(*kind), text.clone()));
                }
            }
            COMMENT => in_comment = 3,
            // Author, text and initials of a comment; elsewhere a string is a name.
            STRING if in_comment > 0 => {
                in_comment -= 1;
                if in_comment > 0 {
                    texts.push((false, utf16(record.data)));
                }
            }
            SLIDE_ATOM => kind = u32::MAX,
            _ => {}
        }
        !matches!(record.kind, HEADERS_FOOTERS | PROGRAM_TAGS) || in_comment > 0 || holds_comment(record)
    });
    let missed = outline.iter().zip(&shown).filter(|(_, shown)| !**shown);
    let missed: Vec<(bool, String)> = missed.map(|((kind, text), _)| (is_title(*kind), text.clone())).collect();
    for (title, text) in
        missed.iter().filter(|(title, _)| *title).chain(&texts).chain(missed.iter().filter(|(t, _)| !*t))
    {
        write(text, *title, draft);
    }
}

/// Comments are kept among what programs add to a slide.
fn holds_comment(record: Record<'_>) -> bool {
    record.kind == PROGRAM_TAGS
}

fn is_title(kind: u32) -> bool {
    matches!(kind, 0 | 6)
}

fn text_of(record: Record<'_>) -> String {
    match record.kind {
        TEXT_WIDE => utf16(record.data),
        _ => record.data.iter().map(|&b| char::from(b)).collect(),
    }
}

fn write(text: &str, title: bool, draft: &mut Draft<'_>) {
    // A line break within a paragraph is a vertical tab; `*` alone stands for a number or a date.
    let text = text.replace(['\r', '\u{B}'], "\n").replace('\0', "");
    if text.trim().is_empty() || text.trim() == "*" {
        return;
    }
    draft.separate(Gap::Line);
    if title {
        draft.begin_heading(1);
    }
    draft.push(text.trim());
    draft.end_heading();
    draft.separate(Gap::Line);
}

#[cfg(test)]
mod tests {
    use super::super::tests::compound;
    use super::*;
    use crate::extract::Limits;

    fn record(kind: u16, flags: u16, data: &[u8]) -> Vec<u8> {
        let length = u32::try_from(data.len()).unwrap();
        [&flags.to_le_bytes()[..], &kind.to_le_bytes(), &length.to_le_bytes(), data].concat()
    }

    fn numbers(all: &[u32]) -> Vec<u8> {
        all.iter().flat_map(|n| n.to_le_bytes()).collect()
    }

    /// Two slides, the second of which comes first in the file.
    fn show() -> Vec<u8> {
        let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        let slide = |text: &str| record(SLIDE, 0xF, &record(1036, 0xF, &record(TEXT_WIDE, 0, &wide(text))));
        let (two, one) = (slide("Zwei"), slide("Eins"));
        let list = [
            record(SLIDE_PERSIST, 0, &numbers(&[2, 0, 0, 256, 0])),
            record(TEXT_HEADER, 0, &numbers(&[0])),
            record(TEXT_NARROW, 0, b"Title"),
            record(SLIDE_PERSIST, 0, &numbers(&[3, 0, 0, 257, 0])),
        ];
        let document = record(DOCUMENT, 0xF, &record(SLIDE_LIST, 0xF, &list.concat()));
        let places = [0, two.len() + one.len(), two.len()].map(|n| u32::try_from(n).unwrap());
        let objects = [two, one, document].concat();
        let directory_at = u32::try_from(objects.len()).unwrap();
        let directory = numbers(&[3 << 20 | 1, places[1], places[2], places[0]]);
        let directory = record(PERSIST_DIRECTORY, 0, &directory);
        let save_at = directory_at + u32::try_from(directory.len()).unwrap();
        let save = record(USER_EDIT, 0, &numbers(&[0, 0, 0, directory_at, 1, 0, 0]));
        let user = numbers(&[0, 0, 0, 0, save_at]);
        compound(&[("PowerPoint Document", &[objects, directory, save].concat()), ("Current User", &user)])
    }

    #[test]
    fn slides_come_in_the_order_shown() {
        let limits = Limits::default();
        let got = extract(&show(), &Context::new(&limits, &[])).unwrap();
        assert_eq!(got.text, "Title\nEins\n\nZwei\n");
        assert_eq!(got.parts.iter().map(|p| p.number).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(got.headings.len(), 1);
    }

    #[test]
    fn broken_shows_are_survived() {
        let limits = Limits::default();
        let deep = (0..50_000).fold(
            Vec::new(),
            |inner: Vec<u8>, _| if inner.len() < 400_000 { record(1036, 0xF, &inner) } else { inner },
        );
        let _ = extract(&compound(&[("PowerPoint Document", &deep)]), &Context::new(&limits, &[]));
        let whole = show();
        for end in (512..whole.len()).step_by(100) {
            let _ = extract(&whole[..end], &Context::new(&limits, &[]));
        }
    }
}
