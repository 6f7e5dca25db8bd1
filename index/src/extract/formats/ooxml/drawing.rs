//! Text in drawings: shapes, diagrams, charts. The same in all office documents.

use crate::extract::Refusal;
use crate::extract::draft::{Draft, Gap};
use crate::extract::package::Package;
use crate::extract::xml::{Node, Xml};

use super::Relations;

/// Reads the part that a diagram's or a chart's element points at.
pub(crate) fn read_pointed_at(
    package: &mut Package<'_>,
    relations: &Relations,
    id: &str,
    draft: &mut Draft<'_>,
) -> Result<(), Refusal> {
    let Some(part) = relations.target(id).map(str::to_owned) else { return Ok(()) };
    read_part(package, &part, draft)
}

/// All text of a part, a paragraph or a label a line.
pub(crate) fn read_part(package: &mut Package<'_>, part: &str, draft: &mut Draft<'_>) -> Result<(), Refusal> {
    let Some(text) = package.read_xml(part)? else { return Ok(()) };
    draft.separate(Gap::Line);
    let mut xml = Xml::new(&text);
    let (mut in_text, mut in_label) = (false, 0_u32);
    while let Some(node) = xml.next() {
        match node {
            Node::Start(tag) => match tag.name() {
                "Fallback" => xml.skip(),
                "t" => in_text = true,
                // Names of series and categories; the numbers of a chart say nothing by themselves.
                "strCache" | "strLit" => in_label += 1,
                "v" if in_label > 0 => in_text = true,
                "br" => draft.separate(Gap::Line),
                _ => {}
            },
            Node::End(name) => match &*name {
                "t" | "v" => {
                    in_text = false;
                    if in_label > 0 {
                        draft.separate(Gap::Line);
                    }
                }
                "strCache" | "strLit" => in_label = in_label.saturating_sub(1),
                "p" => draft.separate(Gap::Line),
                _ => {}
            },
            Node::Text(text) if in_text => draft.push(&text),
            Node::Text(_) => {}
        }
    }
    draft.separate(Gap::Line);
    Ok(())
}
