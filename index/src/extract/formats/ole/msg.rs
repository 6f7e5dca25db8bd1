//! MSG: a mail as Outlook keeps it, with what hangs on it.

use std::path::Path;

use super::{Compound, milliseconds, u16_at, u32_at, utf16};
use crate::extract::codepage::Codepage;
use crate::extract::draft::{Draft, Gap};
use crate::extract::{Context, Extracted, PartKind, Refusal, short};
use crate::limits::TITLE_BYTES_MAX;

/// What hangs on one mail.
const ATTACHMENTS_MAX: usize = 1000;

/// Bytes of a line of the head: a list of receivers.
const HEADER_BYTES_MAX: usize = 8 << 10;

/// Bytes that a packed body may unpack to.
const BODY_BYTES_MAX: usize = 16 << 20;

/// What a packed body may refer to from its beginning.
const RTF_START: &[u8] = b"{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern \\fscript \\fdecor MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl\\red0\\green0\\blue0\r\n\\par \\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx";

const SUBJECT: u16 = 0x0037;
const SUBMITTED: u16 = 0x0039;
const DELIVERED: u16 = 0x0E06;
const SENDER_NAME: u16 = 0x0C1A;
const SENDER_ADDRESS: u16 = 0x0C1F;
const SENDER_SMTP: u16 = 0x5D01;
const TO: u16 = 0x0E04;
const CC: u16 = 0x0E03;
const BODY: u16 = 0x1000;
const BODY_RTF: u16 = 0x1009;
const BODY_HTML: u16 = 0x1013;
const CODEPAGE: u16 = 0x3FFD;
const BODY_CODEPAGE: u16 = 0x3FDE;
const ATTACHED_DATA: u16 = 0x3701;
const ATTACHED_NAME: u16 = 0x3704;
const ATTACHED_LONG_NAME: u16 = 0x3707;
const ATTACHED_SHOWN_NAME: u16 = 0x3001;
const ATTACHED_HIDDEN: u16 = 0x7FFE;

/// Headers, body, attachments. Title, author and date are the mail's.
pub(crate) fn extract(bytes: &[u8], context: &Context<'_>) -> Result<Extracted, Refusal> {
    let mut file = Compound::open(bytes)?;
    if !file.has("__properties_version1.0") {
        return Err(Refusal::failed("it holds no mail"));
    }
    let mut draft = Draft::new(context.limits);
    let (title, author, dated) =
        Message { file: &mut file, folder: String::new(), head_bytes: 32 }.read(context, &mut draft);
    let about = draft.about();
    (about.title, about.author, about.dated) = (title, author, dated);
    draft.finish()
}

/// A mail, or one that hangs on another: a folder of properties.
struct Message<'f, 'a> {
    file: &'f mut Compound<'a>,
    folder: String,
    /// Bytes before the list of properties of fixed length.
    head_bytes: usize,
}

impl Message<'_, '_> {
    fn read(mut self, context: &Context<'_>, draft: &mut Draft<'_>) -> (Option<String>, Option<String>, Option<i64>) {
        let page = self.number(CODEPAGE).and_then(Codepage::of).unwrap_or(Codepage::WESTERN);
        let subject = self.text(SUBJECT, page).map(|s| short(&s, HEADER_BYTES_MAX)).unwrap_or_default();
        let from = self.sender(page);
        let dated = self.time(SUBMITTED).or_else(|| self.time(DELIVERED));
        let head = [
            ("Subject", subject.clone()),
            ("From", from.clone()),
            ("To", self.text(TO, page).unwrap_or_default()),
            ("Cc", self.text(CC, page).unwrap_or_default()),
        ];
        for (name, value) in head {
            let value = short(&value.replace('\0', ""), HEADER_BYTES_MAX);
            if !value.is_empty() {
                draft.separate(Gap::Line);
                draft.push(&format!("{name}: {value}"));
            }
        }
        draft.separate(Gap::Blank);
        self.body(page, context, draft);
        self.attachments(page, context, draft);
        let kept = |text: &str| Some(short(text, TITLE_BYTES_MAX)).filter(|text| !text.is_empty());
        (kept(&subject), kept(&from), dated)
    }

    fn stream(&mut self, id: u16, kind: u16) -> Option<Vec<u8>> {
        let folder = &self.folder;
        self.file.read(&format!("{folder}/__substg1.0_{id:04X}{kind:04X}"))
    }

    fn text(&mut self, id: u16, page: Codepage) -> Option<String> {
        let wide = self.stream(id, 0x1F).map(|bytes| utf16(&bytes));
        let text = wide.or_else(|| self.stream(id, 0x1E).map(|bytes| page.decode(&bytes)));
        text.map(|text| text.trim_end_matches('\0').to_owned())
    }

    /// The eight bytes of a property of fixed length.
    fn fixed(&mut self, id: u16) -> Option<[u8; 8]> {
        let list = self.file.read(&format!("{}/__properties_version1.0", self.folder))?;
        let entry = list.get(self.head_bytes..)?.chunks_exact(16).find(|entry| u16_at(entry, 2) == Some(id))?;
        entry[8..16].try_into().ok()
    }

    fn number(&mut self, id: u16) -> Option<u32> {
        self.fixed(id).and_then(|value| u32_at(&value, 0))
    }

    fn time(&mut self, id: u16) -> Option<i64> {
        self.fixed(id).map(u64::from_le_bytes).and_then(milliseconds)
    }

    fn sender(&mut self, page: Codepage) -> String {
        let name = self.text(SENDER_NAME, page).unwrap_or_default();
        // Within a firm the address is a path in its directory.
        let own = self.text(SENDER_SMTP, page).or_else(|| self.text(SENDER_ADDRESS, page));
        let address = own.filter(|a| a.contains('@') && *a != name);
        short(&address.map_or(name.clone(), |address| format!("{name} <{address}>")), HEADER_BYTES_MAX)
    }

    /// The plain text, or that of the HTML or of the RTF where there is no other.
    fn body(&mut self, page: Codepage, context: &Context<'_>, draft: &mut Draft<'_>) {
        if let Some(text) = self.text(BODY, page).filter(|text| !text.trim().is_empty()) {
            draft.push(text.replace("\r\n", "\n").trim());
            return;
        }
        let Some(inner) = context.inner() else { return };
        let html = self.stream(BODY_HTML, 0x102).or_else(|| self.text(BODY_HTML, page).map(String::into_bytes));
        if let Some(html) = html {
            let own = self.number(BODY_CODEPAGE).and_then(Codepage::of);
            let html = match own {
                Some(own) if std::str::from_utf8(&html).is_err() => own.decode(&html).into_bytes(),
                _ => html,
            };
            if add(Path::new("body.html"), &html, &inner, draft) {
                return;
            }
        }
        if let Some(rtf) = self.stream(BODY_RTF, 0x102).and_then(|packed| unpack(&packed)) {
            add(Path::new("body.rtf"), &rtf, &inner, draft);
        }
    }

    fn attachments(&mut self, page: Codepage, context: &Context<'_>, draft: &mut Draft<'_>) {
        let all = self.file.list(if self.folder.is_empty() { "/" } else { &self.folder });
        let all = all.into_iter().filter(|(name, is_folder)| *is_folder && name.starts_with("__attach_version1.0_"));
        for (number, (name, _)) in (1..).zip(all.take(ATTACHMENTS_MAX)) {
            let Some(inner) = context.inner() else { return };
            let folder = format!("{}/{name}", self.folder);
            Message { file: &mut *self.file, folder, head_bytes: 8 }.attachment(number, page, &inner, draft);
        }
    }

    /// This being what hangs on a mail: its name, and its text where its kind has one.
    fn attachment(mut self, number: u32, page: Codepage, context: &Context<'_>, draft: &mut Draft<'_>) {
        let long = self.text(ATTACHED_LONG_NAME, page).or_else(|| self.text(ATTACHED_NAME, page));
        let name = long.or_else(|| self.text(ATTACHED_SHOWN_NAME, page)).unwrap_or_default();
        let name = short(&name.replace('\0', ""), TITLE_BYTES_MAX);
        let mail = format!("{}/__substg1.0_{ATTACHED_DATA:04X}000D", self.folder);
        let is_mail = !self.file.list(&mail).is_empty();
        // Pictures of the text itself.
        if !is_mail && self.number(ATTACHED_HIDDEN).is_some_and(|hidden| hidden & 1 != 0) {
            return;
        }
        draft.part(PartKind::Attachment, number, Some(&name));
        if is_mail {
            // The depth is that of the containers, which the context counts.
            Message { file: self.file, folder: mail, head_bytes: 24 }.read(context, draft);
            return;
        }
        draft.push(&name);
        draft.separate(Gap::Blank);
        if let Some(data) = self.stream(ATTACHED_DATA, 0x102)
            && context.budget.spend(data.len() as u64)
        {
            add(Path::new(&name), &data, context, draft);
        }
    }
}

/// Adds the text of that file, if its kind has one; says whether it has.
fn add(name: &Path, bytes: &[u8], context: &Context<'_>, draft: &mut Draft<'_>) -> bool {
    let read = crate::extract::extract(name, bytes, context);
    if let Ok(read) = &read {
        draft.append(read);
    }
    read.is_ok()
}

/// Unpacks a body of RTF (MS-OXRTFCP).
fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
    let size = usize::try_from(u32_at(packed, 4)?).ok()?.min(BODY_BYTES_MAX);
    let data = packed.get(16..)?;
    match u32_at(packed, 8)? {
        0x414C_454D => return Some(data[..size.min(data.len())].to_vec()),
        0x7546_5A4C => {}
        _ => return None,
    }
    let mut window = [0_u8; 4096];
    window[..RTF_START.len()].copy_from_slice(RTF_START);
    let (mut at, mut out) = (RTF_START.len(), Vec::new());
    let mut bytes = data.iter().copied();
    while out.len() < size {
        let Some(flags) = bytes.next() else { break };
        for bit in 0..8 {
            let Some(first) = bytes.next() else { return Some(out) };
            let (from, length) = if flags >> bit & 1 == 0 {
                window[at] = first;
                (at, 1)
            } else {
                let Some(second) = bytes.next() else { return Some(out) };
                let reference = usize::from(first) << 8 | usize::from(second);
                (reference >> 4, (reference & 15) + 2)
            };
            // A reference to the place at hand is the end.
            if flags >> bit & 1 == 1 && from == at {
                return Some(out);
            }
            for i in 0..length {
                let byte = window[(from + i) % 4096];
                out.push(byte);
                window[at] = byte;
                at = (at + 1) % 4096;
            }
        }
    }
    out.truncate(size);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::super::tests::compound;
    use super::*;
    use crate::extract::Limits;

    fn read(streams: &[(&str, &[u8])]) -> Result<Extracted, Refusal> {
        let limits = Limits::default();
        extract(&compound(streams), &Context::new(&limits, &[]))
    }

    fn wide(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn a_mail_is_read_with_what_hangs_on_it() {
        let mut list = vec![0; 32];
        list.extend([&[0x40, 0, 0x39, 0, 0, 0, 0, 0][..], &132_223_104_000_000_000_u64.to_le_bytes()].concat());
        let got = read(&[
            ("/__properties_version1.0", &list),
            ("/__substg1.0_0037001F", &wide("Größe")),
            ("/__substg1.0_0C1A001E", b"Ann"),
            ("/__substg1.0_0C1F001E", b"ann@example.org"),
            ("/__substg1.0_1000001F", &wide("Body\r\ntext")),
            ("/__attach_version1.0_#00000000/__substg1.0_3707001F", &wide("notes.txt")),
            ("/__attach_version1.0_#00000000/__substg1.0_37010102", b"hangs on"),
            ("/__attach_version1.0_#00000001/__substg1.0_3001001F", &wide("inner")),
            ("/__attach_version1.0_#00000001/__substg1.0_3701000D/__substg1.0_1000001F", &wide("inner body")),
        ])
        .unwrap();
        let want = "Subject: Größe\nFrom: Ann <ann@example.org>\n\nBody\ntext\n\nnotes.txt\n\nhangs on\n\ninner body\n";
        assert_eq!(got.text, want);
        assert_eq!((got.title.as_deref(), got.dated), (Some("Größe"), Some(1_577_836_800_000)));
        assert_eq!(got.parts.len(), 2);
    }

    #[test]
    fn packed_bodies_are_unpacked() {
        // The first example of the format's description.
        let packed = [
            0x2d, 0, 0, 0, 0x2b, 0, 0, 0, 0x4c, 0x5a, 0x46, 0x75, 0xf1, 0xc5, 0xc7, 0xa7, 0x03, 0, 0x0a, 0, 0x72, 0x63,
            0x70, 0x67, 0x31, 0x32, 0x35, 0x42, 0x32, 0x0a, 0xf3, 0x20, 0x68, 0x65, 0x6c, 0x09, 0, 0x20, 0x62, 0x77,
            0x05, 0xb0, 0x6c, 0x64, 0x7d, 0x0a, 0x80, 0x0f, 0xa0,
        ];
        assert_eq!(unpack(&packed).unwrap(), b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n");
        for end in 0..packed.len() {
            let _ = unpack(&packed[..end]);
        }
    }
}
