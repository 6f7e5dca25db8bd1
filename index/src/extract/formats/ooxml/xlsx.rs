//! Excel workbooks (XLSX, XLSM): each sheet under its name, a row a line and a cell a column, values as they are shown.
//! Comments and the text of drawings stand behind the cells; formulas and hidden phonetic guides are left out.
//!
//! Read as a stream and not into a grid, so that two cells a million rows apart cost two cells.

use std::collections::HashMap;

use crate::extract::draft::{Draft, Gap};
use crate::extract::package::Package;
use crate::extract::xml::{Node, Xml};
use crate::extract::{Context, Extracted, PartKind, Refusal};

use super::number_format::{NumberFormat, built_in};
use super::{Relations, drawing, main_part, properties, required};

/// Sheets read of one workbook.
const SHEETS_MAX: usize = 10_000;

/// Formats of cells; Excel takes 65,490.
const FORMATS_MAX: usize = 65_536;

/// Bytes of a cell's value; Excel takes 32,767 characters.
const CELL_BYTES_MAX: usize = 256 << 10;

/// The cells of all sheets, hidden ones too.
pub(crate) fn extract(bytes: &[u8], context: &Context<'_>) -> Result<Extracted, Refusal> {
    let mut package = Package::open(bytes, &context.budget)?;
    let main = main_part(&mut package, "xl/workbook.xml")?;
    let relations = Relations::of(&mut package, &main)?;
    let workbook = Workbook::read(&required(&mut package, &main)?, &relations);
    let mut shared = Strings::default();
    if let Some(part) = relations.of_kind("sharedStrings").next() {
        shared = Strings::read(&package.read_xml(part)?.unwrap_or_default());
    }
    let mut formats = Formats::default();
    if let Some(part) = relations.of_kind("styles").next() {
        formats = Formats::read(&package.read_xml(part)?.unwrap_or_default());
    }
    formats.from_1904 = workbook.from_1904;
    let mut draft = Draft::new(context.limits);
    for (number, (name, part)) in (1..).zip(&workbook.sheets) {
        draft.part(PartKind::Sheet, number, Some(name));
        // A sheet that is named and not there loses itself only.
        let Some(text) = package.read_xml(part)? else { continue };
        cells(&text, &shared, &formats, &mut draft);
        beside_the_cells(&mut package, part, &mut draft)?;
        if draft.is_full() {
            break;
        }
    }
    properties(&mut package, draft.about())?;
    draft.finish()
}

#[derive(Default)]
struct Workbook {
    /// Name and part of each sheet, in order.
    sheets: Vec<(String, String)>,
    from_1904: bool,
}

impl Workbook {
    fn read(text: &str, relations: &Relations) -> Self {
        let (mut xml, mut out) = (Xml::new(text), Self::default());
        while let Some(node) = xml.next() {
            let Node::Start(tag) = node else { continue };
            match tag.name() {
                "workbookPr" => out.from_1904 = tag.get("date1904").is_some_and(|v| v == "1" || v == "true"),
                "sheet" if out.sheets.len() < SHEETS_MAX => {
                    if let Some(part) = tag.get("id").and_then(|id| relations.target(&id).map(str::to_owned)) {
                        out.sheets.push((tag.get("name").unwrap_or_default(), part));
                    }
                }
                _ => {}
            }
        }
        out
    }
}

/// Texts that cells share, one behind another.
#[derive(Default)]
struct Strings {
    text: String,
    ends: Vec<usize>,
}

impl Strings {
    fn read(text: &str) -> Self {
        let (mut xml, mut out, mut in_text) = (Xml::new(text), Self::default(), false);
        while let Some(node) = xml.next() {
            match node {
                Node::Start(tag) => match tag.name() {
                    "rPh" => xml.skip(),
                    name => in_text = name == "t",
                },
                Node::End(name) => {
                    in_text = false;
                    if name == "si" {
                        out.ends.push(out.text.len());
                    }
                }
                Node::Text(text) if in_text => out.text.push_str(&text),
                Node::Text(_) => {}
            }
        }
        out
    }

    fn get(&self, index: usize) -> Option<&str> {
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        self.text.get(start..end)
    }
}

/// How cells of each style show their numbers.
#[derive(Default)]
struct Formats {
    by_style: Vec<u32>,
    parsed: HashMap<u32, NumberFormat>,
    from_1904: bool,
}

impl Formats {
    fn read(text: &str) -> Self {
        let (mut xml, mut out, mut in_cells) = (Xml::new(text), Self::default(), false);
        let mut codes = HashMap::new();
        while let Some(node) = xml.next() {
            match node {
                Node::Start(tag) => match tag.name() {
                    "numFmt" if codes.len() < FORMATS_MAX => {
                        if let (Some(id), Some(code)) = (number(tag.get("numFmtId")), tag.get("formatCode")) {
                            codes.insert(id, code);
                        }
                    }
                    "cellXfs" => in_cells = true,
                    "xf" if in_cells && out.by_style.len() < FORMATS_MAX => {
                        out.by_style.push(number(tag.get("numFmtId")).unwrap_or(0));
                    }
                    _ => {}
                },
                Node::End(name) if name == "cellXfs" => in_cells = false,
                _ => {}
            }
        }
        for id in &out.by_style {
            let code = codes.get(id).map_or_else(|| built_in(*id), String::as_str);
            out.parsed.entry(*id).or_insert_with(|| NumberFormat::parse(code));
        }
        out
    }

    fn show(&self, value: &str, style: Option<u32>) -> String {
        let Ok(value) = value.trim().parse::<f64>() else { return value.to_owned() };
        let id = style.and_then(|s| self.by_style.get(s as usize)).copied().unwrap_or(0);
        match self.parsed.get(&id) {
            Some(format) => format.show(value, self.from_1904),
            None => NumberFormat::parse("General").show(value, self.from_1904),
        }
    }
}

fn number(text: Option<String>) -> Option<u32> {
    text?.trim().parse().ok()
}

#[derive(Default)]
struct Cell {
    /// `s` for a shared text, `str` and `inlineStr` for its own, `b`, `e`, `d`; none for a number.
    kind: String,
    style: Option<u32>,
    value: String,
}

impl Cell {
    fn shown(self, shared: &Strings, formats: &Formats) -> String {
        match self.kind.as_str() {
            "s" => {
                self.value.trim().parse().ok().and_then(|index| shared.get(index)).unwrap_or_default().trim().to_owned()
            }
            "b" => if self.value.trim() == "1" { "TRUE" } else { "FALSE" }.to_owned(),
            "str" | "inlineStr" | "e" | "d" => self.value.trim().to_owned(),
            _ if self.value.is_empty() => String::new(),
            _ => formats.show(&self.value, self.style),
        }
    }
}

fn cells(text: &str, shared: &Strings, formats: &Formats, draft: &mut Draft<'_>) {
    let (mut xml, mut cell, mut in_value) = (Xml::new(text), Cell::default(), false);
    while let Some(node) = xml.next() {
        if draft.is_full() {
            return;
        }
        match node {
            Node::Start(tag) => match tag.name() {
                "c" => {
                    let kind = tag.get("t").unwrap_or_default();
                    cell = Cell { kind, style: number(tag.get("s")), value: String::new() };
                }
                "v" | "t" => in_value = true,
                "rPh" | "f" | "headerFooter" | "extLst" => xml.skip(),
                _ => {}
            },
            Node::End(name) => match &*name {
                "v" | "t" => in_value = false,
                "c" => {
                    // A cell may have several lines; a row has one.
                    let shown = std::mem::take(&mut cell).shown(shared, formats);
                    draft.push(&if shown.contains(['\n', '\r']) {
                        shown.split_whitespace().collect::<Vec<_>>().join(" ")
                    } else {
                        shown
                    });
                    draft.separate(Gap::Tab);
                }
                "row" => draft.separate(Gap::Line),
                _ => {}
            },
            Node::Text(text) if in_value => {
                let room = CELL_BYTES_MAX.saturating_sub(cell.value.len());
                cell.value.push_str(&text[..crate::extract::floor_boundary(&text, room)]);
            }
            Node::Text(_) => {}
        }
    }
}

/// Comments, text boxes and charts of a sheet.
fn beside_the_cells(package: &mut Package<'_>, sheet: &str, draft: &mut Draft<'_>) -> Result<(), Refusal> {
    let relations = Relations::of(package, sheet)?;
    draft.separate(Gap::Blank);
    for kind in ["threadedComment", "comments"] {
        for part in relations.of_kind(kind) {
            comments(&package.read_xml(part)?.unwrap_or_default(), draft);
        }
        // The old comments of a sheet with new ones repeat them for old programs.
        if relations.of_kind(kind).next().is_some() {
            break;
        }
    }
    for part in relations.of_kind("drawing") {
        drawing::read_part(package, part, draft)?;
        let pointed_at = Relations::of(package, part)?;
        for chart in pointed_at.of_kind("chart").chain(pointed_at.of_kind("diagramData")) {
            drawing::read_part(package, chart, draft)?;
        }
    }
    Ok(())
}

fn comments(text: &str, draft: &mut Draft<'_>) {
    let (mut xml, mut depth) = (Xml::new(text), 0_u32);
    while let Some(node) = xml.next() {
        match node {
            Node::Start(tag) => match tag.name() {
                "rPh" => xml.skip(),
                "text" => depth += 1,
                _ => {}
            },
            Node::End(name) if name == "text" => {
                depth = depth.saturating_sub(1);
                draft.separate(Gap::Line);
            }
            Node::Text(text) if depth > 0 => draft.push(&text),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::Limits;
    use crate::extract::package::tests::packed;

    const WORKBOOK: &str = "<workbook><sheets><sheet name='First' sheetId='1' r:id='a'/>\
                            <sheet name='Hidden' state='hidden' sheetId='2' r:id='b'/></sheets></workbook>";
    const RELATIONS: &str = "<r><Relationship Id='a' Type='x/worksheet' Target='worksheets/1.xml'/>\
                             <Relationship Id='b' Type='x/worksheet' Target='worksheets/2.xml'/>\
                             <Relationship Id='c' Type='x/sharedStrings' Target='strings.xml'/>\
                             <Relationship Id='d' Type='x/styles' Target='styles.xml'/></r>";
    const STYLES: &str = "<s><numFmts><numFmt numFmtId='164' formatCode='0.0%'/></numFmts>\
                          <cellStyleXfs><xf numFmtId='9'/></cellStyleXfs><cellXfs><xf numFmtId='0'/><xf numFmtId='14'/><xf numFmtId='164'/></cellXfs></s>";
    const STRINGS: &str =
        "<sst><si><t>one</t></si><si><r><t>two </t></r><r><t>runs</t></r><rPh><t>zwei</t></rPh></si></sst>";

    fn read(sheet: &str, more: &[(&str, &str)]) -> Extracted {
        let mut members = vec![
            ("xl/workbook.xml", WORKBOOK),
            ("xl/_rels/workbook.xml.rels", RELATIONS),
            ("xl/styles.xml", STYLES),
            ("xl/strings.xml", STRINGS),
            ("xl/worksheets/1.xml", sheet),
        ];
        members.extend_from_slice(more);
        extract(&packed(&members), &Context::new(&Limits::default(), &[])).unwrap()
    }

    #[test]
    fn cells_are_read_as_they_are_shown() {
        let got = read(
            "<worksheet><sheetData><row><c t='s'><v>0</v></c><c/><c t='s'><v>1</v></c><c><f>1/3</f><v>0.30000000000000004</v></c></row>\
             <row><c s='1'><v>43363</v></c><c s='2'><v>0.256</v></c><c t='b'><v>1</v></c><c t='e'><v>#N/A</v></c>\
             <c t='inlineStr'><is><t>in </t><t>line</t></is></c><c t='str'><f>x</f><v>text</v></c></row></sheetData></worksheet>",
            &[("xl/worksheets/2.xml", "<w><row><c><v>5</v></c></row></w>")],
        );
        assert_eq!(got.text, "one\ttwo runs\t0.3\n2018-09-20\t25.6%\tTRUE\t#N/A\tin line\ttext\n\n5\n");
        let parts: Vec<_> = got.parts.iter().map(|p| (p.number, p.name.as_deref())).collect();
        assert_eq!(parts, [(1, Some("First")), (2, Some("Hidden"))]);
    }

    #[test]
    fn absurd_references_are_survived() {
        let got = read(
            "<worksheet><row r='99999999999'><c r='ZZZZ99999999'><v>1</v></c><c t='s'><v>4294967295</v></c><c s='99'><v>2</v></c></row></worksheet>",
            &[],
        );
        assert_eq!(got.text, "1\t2\n");
    }

    #[test]
    fn comments_stand_behind_the_cells() {
        let got = read(
            "<w><row><c><v>5</v></c></row></w>",
            &[
                ("xl/worksheets/_rels/1.xml.rels", "<r><Relationship Id='a' Type='x/comments' Target='../c.xml'/></r>"),
                (
                    "xl/c.xml",
                    "<comments><commentList><comment><text><r><t>Look here</t></r></text></comment></commentList></comments>",
                ),
            ],
        );
        assert_eq!(got.text, "5\n\nLook here\n");
    }
}
