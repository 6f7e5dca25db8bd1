//! Merging neighbours, best pair first: the heart of BPE and of SentencePiece's variant of it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// No neighbour.
const NONE: u32 = u32::MAX;

/// A run of the text that is one token so far, or no token yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Symbol {
    /// First byte in the text.
    pub(super) start: u32,
    /// Length in bytes; 0 once it is merged into its left neighbour.
    pub(super) len: u32,
    /// Its token.
    pub(super) id: Option<u32>,
    previous: u32,
    next: u32,
}

/// A pair that may be merged: lower ranks first, then the leftmost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    rank: u32,
    left: u32,
    right: u32,
    /// Length of both together; another length tells that one of them has changed meanwhile.
    len: u32,
    id: u32,
}

/// Buffers kept from one text to the next.
#[derive(Debug, Default)]
pub(super) struct Merger {
    symbols: Vec<Symbol>,
    queue: BinaryHeap<Reverse<Candidate>>,
}

impl Merger {
    /// Forgets the last text.
    pub(super) fn clear(&mut self) {
        self.symbols.clear();
        self.queue.clear();
    }

    /// Adds the next symbol to the right of the others.
    pub(super) fn push(&mut self, start: usize, len: usize, id: Option<u32>) {
        let at = self.symbols.len() as u32;
        if let Some(last) = self.symbols.last_mut() {
            last.next = at;
        }
        let previous = at.checked_sub(1).unwrap_or(NONE);
        self.symbols.push(Symbol { start: start as u32, len: len as u32, id, previous, next: NONE });
    }

    /// Merges until no pair is left. `rank` gives a pair's rank and the token that it becomes.
    pub(super) fn run(&mut self, rank: impl Fn(Symbol, Symbol) -> Option<(u32, u32)>) {
        for right in 1..self.symbols.len() as u32 {
            self.offer(right - 1, right, &rank);
        }
        while let Some(Reverse(c)) = self.queue.pop() {
            let (left, right) = (self.symbols[c.left as usize], self.symbols[c.right as usize]);
            if left.len == 0 || right.len == 0 || left.len + right.len != c.len {
                continue;
            }
            self.symbols[c.left as usize] = Symbol { len: c.len, id: Some(c.id), next: right.next, ..left };
            self.symbols[c.right as usize].len = 0;
            if right.next != NONE {
                self.symbols[right.next as usize].previous = c.left;
                self.offer(c.left, right.next, &rank);
            }
            if left.previous != NONE {
                self.offer(left.previous, c.left, &rank);
            }
        }
    }

    fn offer(&mut self, left: u32, right: u32, rank: &impl Fn(Symbol, Symbol) -> Option<(u32, u32)>) {
        let (l, r) = (self.symbols[left as usize], self.symbols[right as usize]);
        if let Some((rank, id)) = rank(l, r) {
            self.queue.push(Reverse(Candidate { rank, left, right, len: l.len + r.len, id }));
        }
    }

    /// What is left, from left to right.
    pub(super) fn symbols(&self) -> impl Iterator<Item = Symbol> {
        self.symbols.iter().copied().filter(|s| s.len > 0)
    }
}
