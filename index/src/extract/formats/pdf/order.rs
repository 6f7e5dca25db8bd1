//! The order of lines by their place on the page, where the order drawn is none: the page is cut at its widest gaps,
//! across and along, until nothing is left to cut.

use super::lines::Line;

/// Cuts within cuts; a page has columns, sections and tables within them.
const DEPTH_MAX: usize = 12;

/// Directions that are told apart; what runs in yet another keeps the order drawn.
const WAYS_MAX: usize = 8;

/// The lines in the order of reading. Lines that run in other directions follow those of the first.
pub(super) fn by_place(lines: Vec<Line>) -> Vec<Line> {
    let mut out = Vec::with_capacity(lines.len());
    let mut rest = lines;
    for _ in 0..WAYS_MAX {
        let Some(first) = rest.first() else { break };
        let way = first.clone();
        let (same, others): (Vec<Line>, Vec<Line>) = rest.into_iter().partition(|line| line.is_along(&way));
        cut(same, &mut out, 0);
        rest = others;
    }
    out.append(&mut rest);
    out
}

fn cut(mut lines: Vec<Line>, out: &mut Vec<Line>, depth: usize) {
    if lines.len() <= 1 || depth >= DEPTH_MAX {
        lines.sort_by(|a, b| b.base.total_cmp(&a.base).then(a.start.total_cmp(&b.start)));
        out.append(&mut lines);
        return;
    }
    let size = lines.iter().map(|l| l.size).sum::<f32>() / lines.len() as f32;
    let columns = widest_gap(&mut lines.iter().map(|l| (l.start, l.end)).collect::<Vec<_>>());
    let rows = widest_gap(&mut lines.iter().map(|l| (l.base, l.base + l.size)).collect::<Vec<_>>());
    let column = columns.filter(|(width, _)| *width > size);
    let row = rows.filter(|(height, _)| *height > 0.0);
    // A gap from top to bottom makes columns, unless a wider one from side to side parts what has none.
    let parts: (Vec<Line>, Vec<Line>) = match (column, row) {
        (Some((width, at)), row) if row.is_none_or(|(height, _)| height < 2.0 * width) => {
            lines.into_iter().partition(|l| l.end <= at)
        }
        (_, Some((_, at))) => lines.into_iter().partition(|l| l.base >= at),
        _ => {
            cut(lines, out, DEPTH_MAX);
            return;
        }
    };
    if parts.0.is_empty() || parts.1.is_empty() {
        let (mut first, second) = parts;
        first.extend(second);
        cut(first, out, DEPTH_MAX);
        return;
    }
    cut(parts.0, out, depth + 1);
    cut(parts.1, out, depth + 1);
}

/// The widest stretch that no span covers, and its middle.
fn widest_gap(spans: &mut [(f32, f32)]) -> Option<(f32, f32)> {
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut end = spans.first()?.1;
    let mut best: Option<(f32, f32)> = None;
    for &(from, to) in spans.iter() {
        let gap = from - end;
        if gap > 0.0 && best.is_none_or(|(width, _)| gap > width) {
            best = Some((gap, end + gap / 2.0));
        }
        end = end.max(to);
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_before_rows() {
        let line = |text: &str, start: f32, base: f32| Line {
            text: text.to_owned(),
            start,
            end: start + 100.0,
            base,
            size: 10.0,
            way: (1.0, 0.0),
        };
        let mut lines = vec![];
        for i in 0..4 {
            let base = 700.0 - 12.0 * i as f32;
            lines.push(line(&format!("b{i}"), 150.0, base));
            lines.push(line(&format!("a{i}"), 0.0, base));
        }
        let order: Vec<String> = by_place(lines).into_iter().map(|l| l.text).collect();
        assert_eq!(order, ["a0", "a1", "a2", "a3", "b0", "b1", "b2", "b3"]);
    }
}
