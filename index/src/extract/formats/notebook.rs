//! Notebooks (ipynb): text and code of the cells in order, and what they printed. Pictures and other data are left out.

use std::borrow::Cow;

use serde_json::Value;

use crate::extract::draft::{Draft, Gap};
use crate::extract::{Context, Extracted, PartKind, Refusal, floor_boundary, short};
use crate::limits::TITLE_BYTES_MAX;

use super::markdown;

/// Cells read of one notebook.
const CELLS_MAX: usize = 50_000;

/// Bytes kept of what one cell printed: logs and tables of numbers are long and say little.
const OUTPUT_BYTES_MAX: usize = 4 << 10;

/// Every cell is a part.
pub(crate) fn extract(bytes: &[u8], context: &Context<'_>) -> Result<Extracted, Refusal> {
    let broken = |error| Refusal::failed(format!("it is broken: {error}"));
    // A notebook's nesting is bounded by the parser itself.
    let notebook: Value = serde_json::from_slice(bytes).map_err(broken)?;
    let cells = notebook.get("cells").or_else(|| notebook.pointer("/worksheets/0/cells")).and_then(Value::as_array);
    let cells = cells.ok_or_else(|| Refusal::failed("it is broken: it has no cells"))?;
    let mut draft = Draft::new(context.limits);
    for (number, cell) in (1..).zip(cells.iter().take(CELLS_MAX)) {
        draft.part(PartKind::Cell, number, None);
        let source = joined(cell.get("source").or_else(|| cell.get("input")));
        match cell.get("cell_type").and_then(Value::as_str) {
            Some("markdown") => match markdown::extract(without_data(&source).as_bytes(), context.limits) {
                Ok(read) => draft.append(&read),
                Err(_) => continue,
            },
            _ => draft.push(source.trim_end()),
        }
        for output in cell.get("outputs").and_then(Value::as_array).into_iter().flatten() {
            draft.separate(Gap::Blank);
            draft.push(printed(output).trim());
        }
    }
    let title = notebook.pointer("/metadata/title").and_then(Value::as_str);
    draft.about().title = title.map(|title| short(title, TITLE_BYTES_MAX)).filter(|title| !title.is_empty());
    draft.finish()
}

/// Text that may be one string or one for each line.
fn joined(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(lines)) => lines.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    }
}

/// What a cell printed, as text.
fn printed(output: &Value) -> String {
    let text = output.get("text").or_else(|| output.pointer("/data/text~1plain"));
    let mut text = joined(text);
    text.truncate(floor_boundary(&text, OUTPUT_BYTES_MAX));
    text
}

/// Pictures that are written into the text itself are cut out.
fn without_data(text: &str) -> Cow<'_, str> {
    if !text.contains(";base64,") {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    let mut pieces = text.split(";base64,");
    out.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        out.push_str(piece.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=')));
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::Limits;

    fn read(json: &str) -> Result<Extracted, Refusal> {
        extract(json.as_bytes(), &Context::new(&Limits::default(), &[]))
    }

    #[test]
    fn cells_are_parts_and_pictures_left_out() {
        let got = read(
            r##"{"cells":[{"cell_type":"markdown","source":["# Head\n","text ![x](data:image/png;base64,iVBORw0KGgo=) more"]},
                {"cell_type":"code","source":"print(1)","outputs":[{"text":["1\n"]},{"data":{"image/png":"iVBORw0KGgo=","text/plain":"<Figure>"}}]},
                {"cell_type":"raw","source":null},"no cell",null,{"cell_type":"markdown","source":{"a":1}}]}"##,
        )
        .unwrap();
        assert_eq!(got.text, "# Head\ntext ![x](data:image/png) more\n\nprint(1)\n\n1\n\n<Figure>\n");
        assert_eq!(got.parts.iter().map(|p| (p.start, p.number)).collect::<Vec<_>>(), [(0, 1), (39, 2)]);
        assert_eq!(got.title.as_deref(), Some("Head"));
    }

    #[test]
    fn what_is_no_notebook_is_broken() {
        for json in ["{\"cells\":[{\"cell_type\":\"mark", "{}", "[]", &"[".repeat(100_000)] {
            assert_eq!(read(json).unwrap_err().state, crate::State::Failed);
        }
    }
}
