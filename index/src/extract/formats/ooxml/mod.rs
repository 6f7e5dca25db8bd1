//! What Word, PowerPoint and Excel documents have in common: parts that point at one another, and who wrote them.

pub(crate) mod docx;
pub(crate) mod drawing;
pub(crate) mod locked;
pub(crate) mod number_format;
pub(crate) mod pptx;
pub(crate) mod styles;
pub(crate) mod xlsx;

use std::path::Path;

use crate::extract::draft::Draft;
use crate::extract::package::Package;
use crate::extract::xml::{Node, Xml};
use crate::extract::{Context, Extracted, Refusal, date, short};
use crate::limits::TITLE_BYTES_MAX;

/// Relations read of one part; a slide has a few dozen, a long document some thousand pictures and links.
const RELATIONS_MAX: usize = 100_000;

/// Keywords kept.
const KEYWORDS_MAX: usize = 32;

/// That one part points at another.
pub(crate) struct Relation {
    pub id: String,
    /// The last word of its type, such as `slide`.
    pub kind: String,
    /// Name of the part it points at; what lies outside of the document is never followed and not listed.
    pub target: String,
}

/// What a part points at.
pub(crate) struct Relations(Vec<Relation>);

impl Relations {
    /// Those of the part of that name; none where it has none.
    ///
    /// # Errors
    /// They cannot be unpacked.
    pub(crate) fn of(package: &mut Package<'_>, part: &str) -> Result<Self, Refusal> {
        let (folder, file) = part.rsplit_once('/').unwrap_or(("", part));
        let slash = if folder.is_empty() { "" } else { "/" };
        let text = package.read_xml(&format!("{folder}{slash}_rels/{file}.rels"))?.unwrap_or_default();
        let (mut xml, mut relations) = (Xml::new(&text), Vec::new());
        while let Some(node) = xml.next() {
            let Node::Start(tag) = node else { continue };
            if tag.name() != "Relationship" || relations.len() >= RELATIONS_MAX {
                continue;
            }
            let external = tag.get("TargetMode").is_some_and(|m| m.eq_ignore_ascii_case("external"));
            if let (false, Some(id), Some(kind), Some(target)) =
                (external, tag.get("Id"), tag.get("Type"), tag.get("Target"))
            {
                let kind = kind.rsplit('/').next().unwrap_or_default().to_owned();
                relations.push(Relation { id, kind, target: resolve(folder, &target) });
            }
        }
        Ok(Self(relations))
    }

    /// The part that this id points at.
    pub(crate) fn target(&self, id: &str) -> Option<&str> {
        self.0.iter().find(|r| r.id == id).map(|r| r.target.as_str())
    }

    /// The parts of that kind, in order.
    pub(crate) fn of_kind<'r>(&'r self, kind: &'r str) -> impl Iterator<Item = &'r str> + 'r {
        self.0.iter().filter(move |r| r.kind == kind).map(|r| r.target.as_str())
    }
}

/// The name that a target has, seen from a folder.
pub(crate) fn resolve(folder: &str, target: &str) -> String {
    let mut path: Vec<&str> =
        if target.starts_with('/') { Vec::new() } else { folder.split('/').filter(|s| !s.is_empty()).collect() };
    for step in target.split('/') {
        match step {
            "" | "." => {}
            ".." => {
                path.pop();
            }
            step => path.push(step),
        }
    }
    path.join("/")
}

/// The main part of a document: what its root points at, or the usual name.
pub(crate) fn main_part(package: &mut Package<'_>, usual: &str) -> Result<String, Refusal> {
    let root = Relations::of(package, "")?;
    let told = root.of_kind("officeDocument").next().filter(|part| package.has(part));
    Ok(told.unwrap_or(usual).to_owned())
}

/// The XML of a part that must be there.
pub(crate) fn required(package: &mut Package<'_>, part: &str) -> Result<String, Refusal> {
    package.read_xml(part)?.ok_or_else(|| Refusal::failed(format!("it is broken: it has no {}", short(part, 100))))
}

/// Title, author, date, keywords and language, as the document says.
pub(crate) fn properties(package: &mut Package<'_>, out: &mut Extracted) -> Result<(), Refusal> {
    let root = Relations::of(package, "")?;
    let part = root.of_kind("core-properties").next().unwrap_or("docProps/core.xml").to_owned();
    let text = package.read_xml(&part)?.unwrap_or_default();
    let mut xml = Xml::new(&text);
    while let Some(node) = xml.next() {
        let Node::Start(tag) = node else { continue };
        let name = tag.name().to_owned();
        if name == "coreProperties" {
            continue;
        }
        let value = short(&xml.text(4 * TITLE_BYTES_MAX), TITLE_BYTES_MAX);
        if value.is_empty() {
            continue;
        }
        match name.as_str() {
            "title" => out.title = Some(value),
            "creator" => out.author = Some(value),
            "language" => out.language = Some(value),
            "created" => out.dated = date::parse_iso(&value),
            "keywords" | "category" => {
                let words = value.split([',', ';']).map(|w| short(w, 64)).filter(|w| !w.is_empty());
                out.keywords.extend(words.take(KEYWORDS_MAX.saturating_sub(out.keywords.len())));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Reads a document that lies in this one, by the same rules; what cannot be read is left out.
pub(crate) fn embedded(
    package: &mut Package<'_>,
    part: &str,
    context: &Context<'_>,
    draft: &mut Draft<'_>,
) -> Result<(), Refusal> {
    let Some(inner) = context.inner() else { return Ok(()) };
    let Some(bytes) = package.read(part)? else { return Ok(()) };
    if let Ok(read) = crate::extract::extract(Path::new(part), &bytes, &inner) {
        draft.append(&read);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::Budget;
    use crate::extract::package::tests::packed;

    #[test]
    fn targets_are_seen_from_their_part() {
        for (folder, target, name) in [
            ("word", "styles.xml", "word/styles.xml"),
            ("ppt/slides", "../notesSlides/n.xml", "ppt/notesSlides/n.xml"),
            ("xl", "/xl/worksheets/s.xml", "xl/worksheets/s.xml"),
            ("", "../../etc/passwd", "etc/passwd"),
        ] {
            assert_eq!(resolve(folder, target), name);
        }
    }

    #[test]
    fn what_lies_outside_is_not_followed() {
        let rels = "<Relationships><Relationship Id='a' Type='x/image' Target='http://h/' TargetMode='External'/>\
                    <Relationship Id='b' Type='x/slide' Target='s/1.xml'/></Relationships>";
        let bytes = packed(&[("ppt/_rels/p.xml.rels", rels)]);
        let mut package = Package::open(&bytes, &Budget::default()).unwrap();
        let relations = Relations::of(&mut package, "ppt/p.xml").unwrap();
        assert_eq!((relations.target("a"), relations.target("b")), (None, Some("ppt/s/1.xml")));
    }

    #[test]
    fn properties_are_read() {
        let core = "<cp:coreProperties><dc:title> A  title</dc:title><dc:creator>Ann</dc:creator>\
                    <dcterms:created>1970-01-02T00:00:00Z</dcterms:created><cp:keywords>one, two;three</cp:keywords>\
                    <dc:language>de-CH</dc:language></cp:coreProperties>";
        let bytes = packed(&[("docProps/core.xml", core)]);
        let mut out = Extracted::default();
        properties(&mut Package::open(&bytes, &Budget::default()).unwrap(), &mut out).unwrap();
        assert_eq!(
            (out.title.as_deref(), out.author.as_deref(), out.dated),
            (Some("A title"), Some("Ann"), Some(86_400_000))
        );
        assert_eq!((out.keywords.join("+"), out.language.as_deref()), ("one+two+three".to_owned(), Some("de-CH")));
    }
}
