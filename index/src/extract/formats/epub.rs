//! Books (EPUB): chapters in reading order, each under the name that the table of contents gives it.

use std::collections::{HashMap, HashSet};

use crate::extract::draft::Draft;
use crate::extract::package::Package;
use crate::extract::xml::{Node, Tag, Xml};
use crate::extract::{Context, Extracted, PartKind, Refusal, date, short};
use crate::limits::TITLE_BYTES_MAX;

use super::html;
use super::ooxml::resolve;

/// Chapters read of one book, and entries of its contents.
const CHAPTERS_MAX: usize = 20_000;

/// Keywords kept.
const KEYWORDS_MAX: usize = 32;

/// Every chapter once, even if the reading order names it again.
pub(crate) fn extract(bytes: &[u8], context: &Context<'_>) -> Result<Extracted, Refusal> {
    let mut package = Package::open(bytes, &context.budget)?;
    let container = package.read_xml("META-INF/container.xml")?.unwrap_or_default();
    let root = root_file(&container).ok_or_else(|| Refusal::failed("it is broken: it names no book"))?;
    let text = package.read_xml(&root)?.ok_or_else(|| Refusal::failed("it is broken: its book is not in it"))?;
    let mut book = Book::read(&text, root.rsplit_once('/').map_or("", |(folder, _)| folder));
    let locked = locked_members(&package.read_xml("META-INF/encryption.xml")?.unwrap_or_default());
    if book.chapters.iter().any(|chapter| locked.contains(chapter)) {
        return Err(Refusal { reason: "it is locked to a reader's account or device".to_owned(), ..Refusal::locked() });
    }
    let names = book.names(&mut package)?;
    let mut draft = Draft::new(context.limits);
    *draft.about() = Extracted { charset: "UTF-8", ..std::mem::take(&mut book.about) };
    let mut seen = HashSet::new();
    for (number, chapter) in (1..).zip(&book.chapters) {
        if draft.is_full() || !seen.insert(chapter) {
            continue;
        }
        // A chapter that is named and not there, or broken, loses itself only.
        let Ok(Some(bytes)) = package.read(chapter) else { continue };
        let Ok(read) = html::extract(&bytes, context.limits) else { continue };
        if read.text.trim().is_empty() {
            continue;
        }
        draft.part(PartKind::Chapter, number, names.get(chapter).map(String::as_str));
        draft.append(&read);
    }
    draft.finish()
}

fn root_file(container: &str) -> Option<String> {
    let mut xml = Xml::new(container);
    while let Some(node) = xml.next() {
        if let Node::Start(tag) = node
            && tag.name() == "rootfile"
        {
            return tag.get("full-path").map(|path| resolve("", &path));
        }
    }
    None
}

/// Members that are encrypted, other than fonts: those are only mangled, by a way of their own.
fn locked_members(encryption: &str) -> HashSet<String> {
    let (mut xml, mut out, mut mangled) = (Xml::new(encryption), HashSet::new(), false);
    while let Some(node) = xml.next() {
        let Node::Start(tag) = node else { continue };
        match tag.name() {
            "EncryptedData" => mangled = false,
            "EncryptionMethod" => {
                let way = tag.get("Algorithm").unwrap_or_default();
                mangled = way.contains("idpf.org/2008/embedding") || way.contains("ns.adobe.com/pdf/enc");
            }
            "CipherReference" if !mangled => out.extend(tag.get("URI").map(|uri| resolve("", &decoded(&uri)))),
            _ => {}
        }
    }
    out
}

/// A reference as a member's name: without what follows `#`, and with `%20` as a space.
fn decoded(reference: &str) -> String {
    let bytes = reference.split('#').next().unwrap_or_default().as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|h| std::str::from_utf8(h).ok());
        match hex.filter(|_| bytes[at] == b'%').and_then(|h| u8::from_str_radix(h, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// What the package document says.
#[derive(Default)]
struct Book {
    about: Extracted,
    /// Names of the chapters' members, in reading order.
    chapters: Vec<String>,
    /// Members that hold the table of contents: the new kind and the old.
    contents: Vec<String>,
}

impl Book {
    fn read(text: &str, folder: &str) -> Self {
        let (mut xml, mut out) = (Xml::new(text), Self::default());
        let mut items: HashMap<String, String> = HashMap::new();
        while let Some(node) = xml.next() {
            let Node::Start(tag) = node else { continue };
            match tag.name() {
                "item" if items.len() < CHAPTERS_MAX => {
                    let member = resolve(folder, &decoded(&tag.get("href").unwrap_or_default()));
                    let is_contents = tag.get("properties").is_some_and(|p| p.split(' ').any(|w| w == "nav"))
                        || tag.get("media-type").is_some_and(|m| m == "application/x-dtbncx+xml");
                    if is_contents {
                        out.contents.push(member.clone());
                    }
                    items.insert(tag.get("id").unwrap_or_default(), member);
                }
                "itemref" if out.chapters.len() < CHAPTERS_MAX => {
                    out.chapters.extend(tag.get("idref").and_then(|id| items.get(&id).cloned()));
                }
                _ => out.property(&tag, &mut xml),
            }
        }
        out
    }

    fn property(&mut self, tag: &Tag<'_>, xml: &mut Xml<'_>) {
        let name = tag.name().to_owned();
        if !["title", "creator", "language", "date", "subject"].contains(&name.as_str()) {
            return;
        }
        let value = short(&xml.text(4 * TITLE_BYTES_MAX), TITLE_BYTES_MAX);
        let about = &mut self.about;
        match name.as_str() {
            _ if value.is_empty() => {}
            "title" if about.title.is_none() => about.title = Some(value),
            "creator" => {
                about.author = Some(match about.author.take() {
                    Some(others) => short(&format!("{others}, {value}"), TITLE_BYTES_MAX),
                    None => value,
                });
            }
            "language" if about.language.is_none() => about.language = Some(value),
            "date" if about.dated.is_none() => about.dated = date::parse_iso(&value),
            "subject" if about.keywords.len() < KEYWORDS_MAX => about.keywords.push(short(&value, 64)),
            _ => {}
        }
    }

    /// The name of each chapter's member by the table of contents; the first where it has several.
    fn names(&self, package: &mut Package<'_>) -> Result<HashMap<String, String>, Refusal> {
        let mut names = HashMap::new();
        for contents in self.contents.iter().take(2) {
            let folder = contents.rsplit_once('/').map_or("", |(folder, _)| folder);
            let text = package.read_xml(contents)?.unwrap_or_default();
            let (mut xml, mut label) = (Xml::new(&text), String::new());
            while let Some(node) = xml.next() {
                let Node::Start(tag) = node else { continue };
                match tag.name() {
                    "navLabel" => label = short(&xml.text(4 * TITLE_BYTES_MAX), TITLE_BYTES_MAX),
                    "content" => name(&mut names, folder, tag.get("src"), std::mem::take(&mut label)),
                    "a" => {
                        let href = tag.get("href");
                        let label = short(&xml.text(4 * TITLE_BYTES_MAX), TITLE_BYTES_MAX);
                        name(&mut names, folder, href, label);
                    }
                    _ => {}
                }
            }
        }
        Ok(names)
    }
}

fn name(names: &mut HashMap<String, String>, folder: &str, target: Option<String>, label: String) {
    if let Some(target) = target.filter(|_| !label.is_empty() && names.len() < CHAPTERS_MAX) {
        names.entry(resolve(folder, &decoded(&target))).or_insert(label);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::Limits;
    use crate::extract::package::tests::packed;

    const CONTAINER: &str = "<container><rootfiles><rootfile full-path='O/c.opf'/></rootfiles></container>";
    const BOOK: &str = "<package><metadata><dc:title>The book</dc:title><dc:creator>A</dc:creator><dc:creator>B</dc:creator>\
        <dc:language>en</dc:language></metadata><manifest><item id='n' href='toc.ncx' media-type='application/x-dtbncx+xml'/>\
        <item id='a' href='a.xhtml'/><item id='b' href='b%20c.xhtml'/><item id='e' href='../../../etc/passwd'/></manifest>\
        <spine><itemref idref='b'/><itemref idref='a'/><itemref idref='a'/><itemref idref='e'/></spine></package>";
    const CONTENTS: &str =
        "<ncx><navPoint><navLabel><text>Begin</text></navLabel><content src='b%20c.xhtml#x'/></navPoint></ncx>";

    fn book(more: &[(&str, &str)]) -> Result<Extracted, Refusal> {
        let mut members = vec![
            ("META-INF/container.xml", CONTAINER),
            ("O/c.opf", BOOK),
            ("O/toc.ncx", CONTENTS),
            ("O/a.xhtml", "<html><head><title>x</title></head><body><h1>End</h1><p>last</p></body></html>"),
            ("O/b c.xhtml", "<html><body><p>first</p></body></html>"),
        ];
        members.extend_from_slice(more);
        extract(&packed(&members), &Context::new(&Limits::default(), &[]))
    }

    #[test]
    fn chapters_come_in_reading_order_and_once() {
        let got = book(&[]).unwrap();
        assert_eq!(got.text, "first\n\nEnd\n\nlast\n\n");
        let parts: Vec<_> = got.parts.iter().map(|p| (p.start, p.number, p.name.as_deref())).collect();
        assert_eq!(parts, [(0, 1, Some("Begin")), (7, 2, None)]);
        assert_eq!(got.headings[0].start, 7);
        assert_eq!((got.title.as_deref(), got.author.as_deref()), (Some("The book"), Some("A, B")));
    }

    #[test]
    fn a_book_locked_to_an_account_is_locked_and_one_with_mangled_fonts_is_not() {
        let encryption = |way: &str, member: &str| {
            format!(
                "<encryption><EncryptedData><EncryptionMethod Algorithm='{way}'/><CipherReference URI='{member}'/></EncryptedData></encryption>"
            )
        };
        let content = encryption("http://www.w3.org/2001/04/xmlenc#aes128-cbc", "O/a.xhtml");
        let refused = book(&[("META-INF/encryption.xml", &content)]).unwrap_err();
        assert_eq!(refused.state, crate::State::Locked);
        let font = encryption("http://www.idpf.org/2008/embedding", "O/a.xhtml");
        assert!(book(&[("META-INF/encryption.xml", &font)]).is_ok());
    }
}
