//! SentencePiece BPE: characters are merged pairwise, best score first, and what no token covers falls back to bytes.
//! The `tokenizers` crate merges by rank of a merge list, which these files do not have.

use std::collections::{BinaryHeap, HashMap};

/// The vocabulary of a SentencePiece BPE model.
#[derive(Debug)]
pub(super) struct Spm {
    /// Text to id and score. Control tokens are left out, so that no text can become one.
    tokens: HashMap<String, (u32, f32)>,
    /// The token of each byte, where there is one.
    bytes: [Option<u32>; 256],
    unknown: u32,
    prefix_space: bool,
}

/// A candidate merge of the symbols that begin at `left` and `right`, seen with the given lengths.
#[derive(Debug, PartialEq)]
struct Merge {
    score: f32,
    left: usize,
    right: usize,
    bytes: usize,
}

impl Eq for Merge {}

impl Ord for Merge {
    /// Best score first, then leftmost.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.score.total_cmp(&other.score).then(other.left.cmp(&self.left))
    }
}

impl PartialOrd for Merge {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// A run of text; `len` is 0 once it was merged into its left neighbour. Indices are symbol numbers.
#[derive(Debug, Clone, Copy)]
struct Symbol {
    start: usize,
    len: usize,
    previous: Option<usize>,
    next: Option<usize>,
}

impl Spm {
    pub(super) fn new(
        tokens: impl Iterator<Item = (String, u32, f32)>,
        bytes: [Option<u32>; 256],
        unknown: u32,
        prefix_space: bool,
    ) -> Self {
        let tokens = tokens.map(|(text, id, score)| (text, (id, score))).collect();
        Self { tokens, bytes, unknown, prefix_space }
    }

    /// Appends the ids of `text`; `first` says whether it begins the sequence.
    pub(super) fn encode(&self, text: &str, first: bool, ids: &mut Vec<u32>) {
        let mut escaped = String::with_capacity(text.len() * 2);
        if self.prefix_space && first {
            escaped.push('\u{2581}');
        }
        escaped.extend(text.chars().map(|c| if c == ' ' { '\u{2581}' } else { c }));
        for symbol in self.merge(&escaped) {
            self.emit(&escaped[symbol.start..symbol.start + symbol.len], ids);
        }
    }

    fn emit(&self, piece: &str, ids: &mut Vec<u32>) {
        if let Some((id, _)) = self.tokens.get(piece) {
            ids.push(*id);
            return;
        }
        for byte in piece.bytes() {
            ids.push(self.bytes[usize::from(byte)].unwrap_or(self.unknown));
        }
    }

    fn merge(&self, text: &str) -> Vec<Symbol> {
        let mut symbols: Vec<Symbol> = text
            .char_indices()
            .enumerate()
            .map(|(i, (start, c))| Symbol {
                start,
                len: c.len_utf8(),
                previous: i.checked_sub(1),
                next: Some(i + 1),
            })
            .collect();
        if let Some(last) = symbols.last_mut() {
            last.next = None;
        }
        let mut queue = BinaryHeap::new();
        for right in 1..symbols.len() {
            self.propose(text, &symbols, Some(right - 1), Some(right), &mut queue);
        }
        while let Some(merge) = queue.pop() {
            let (left, right) = (symbols[merge.left], symbols[merge.right]);
            // A side may have been merged otherwise since this was proposed.
            if left.len == 0 || right.len == 0 || left.len + right.len != merge.bytes {
                continue;
            }
            symbols[merge.left].len = merge.bytes;
            symbols[merge.left].next = right.next;
            symbols[merge.right].len = 0;
            if let Some(next) = right.next {
                symbols[next].previous = Some(merge.left);
            }
            self.propose(text, &symbols, left.previous, Some(merge.left), &mut queue);
            self.propose(text, &symbols, Some(merge.left), right.next, &mut queue);
        }
        symbols.retain(|s| s.len > 0);
        symbols
    }

    fn propose(
        &self,
        text: &str,
        symbols: &[Symbol],
        left: Option<usize>,
        right: Option<usize>,
        queue: &mut BinaryHeap<Merge>,
    ) {
        let (Some(left), Some(right)) = (left, right) else { return };
        let bytes = symbols[left].len + symbols[right].len;
        let start = symbols[left].start;
        if let Some((_, score)) = self.tokens.get(&text[start..start + bytes]) {
            queue.push(Merge { score: *score, left, right, bytes });
        }
    }
}
