//! Normalisation rules in the form of `tokenizer.ggml.precompiled_charsmap`, the one of SentencePiece.
//!
//! ```text
//! u32 trie bytes | trie: u32 units | replacements, each ended by a zero byte
//! ```
//! The trie is a double array over the bytes of the character to replace. Following byte `c` from the unit at `p` leads
//! to the unit at `p ^ offset(p) ^ c`, which is there if its label is `c`; a unit whose leaf bit is set has a value, the
//! place of its replacement, in the unit at `p ^ offset(p)`.
//! Bits of a unit: 0-7 label, 8 leaf, 9 the offset counts in 256s, 10-30 offset; of a value unit: 31 set, 0-30 value.

use std::collections::{BTreeMap, HashMap, HashSet};

const LEAF: u32 = 1 << 8;
const VALUE: u32 = 1 << 31;
/// Offsets that fit bits 10 to 30.
const MAX_UNITS: usize = 1 << 21;
/// Children of a node differ in one byte, so they lie in one block of this many units.
const BLOCK: usize = 256;
/// Blocks searched for free places; earlier ones are nearly full, and a bound keeps the search linear.
const OPEN_BLOCKS: usize = 16;

/// Rules, each from one character to a text.
#[derive(Debug, Clone, Default)]
pub(super) struct CharsMap {
    rules: BTreeMap<char, String>,
}

/// A node of the plain trie.
#[derive(Debug, Default)]
struct Node {
    children: BTreeMap<u8, usize>,
    value: Option<u32>,
}

impl CharsMap {
    /// Adds a rule; a later one for the same character wins. Neither side holds U+0000.
    pub(super) fn insert(&mut self, from: char, to: String) {
        self.rules.insert(from, to);
    }

    /// The bytes of the key, or none when there are more rules than offsets can reach.
    pub(super) fn to_bytes(&self) -> Option<Vec<u8>> {
        let (nodes, replacements) = self.trie();
        let units = DoubleArray::build(&nodes)?;
        let mut out = ((units.len() * 4) as u32).to_le_bytes().to_vec();
        out.extend(units.iter().flat_map(|unit| unit.to_le_bytes()));
        out.extend_from_slice(&replacements);
        Some(out)
    }

    /// The plain trie, root first, and the replacements that its values point to.
    fn trie(&self) -> (Vec<Node>, Vec<u8>) {
        let mut nodes = vec![Node::default()];
        let mut replacements = Vec::new();
        let mut places: HashMap<&str, u32> = HashMap::new();
        for (from, to) in &self.rules {
            let place = *places.entry(to).or_insert_with(|| {
                let place = replacements.len() as u32;
                replacements.extend_from_slice(to.as_bytes());
                replacements.push(0);
                place
            });
            let mut at = 0;
            for byte in from.encode_utf8(&mut [0; 4]).bytes() {
                let fresh = nodes.len();
                let next = *nodes[at].children.entry(byte).or_insert(fresh);
                if next == fresh {
                    nodes.push(Node::default());
                }
                at = next;
            }
            nodes[at].value = Some(place);
        }
        (nodes, replacements)
    }
}

/// The double array in the making.
#[derive(Debug, Default)]
struct DoubleArray {
    units: Vec<u32>,
    used: Vec<bool>,
    /// Two nodes with the same base would see each other's children.
    bases: HashSet<usize>,
}

impl DoubleArray {
    fn build(nodes: &[Node]) -> Option<Vec<u32>> {
        let mut array = Self::default();
        array.grow();
        array.used[0] = true;
        // Nodes whose unit is placed and whose children are not.
        let mut open = vec![(0usize, 0usize)];
        while let Some((node, at)) = open.pop() {
            let node = &nodes[node];
            let mut labels: Vec<u8> = node.children.keys().copied().collect();
            if node.value.is_some() {
                // The value lies where the byte zero would lead.
                labels.insert(0, 0);
            }
            if labels.is_empty() {
                continue;
            }
            let base = array.place(&labels)?;
            array.units[at] |= ((at ^ base) as u32) << 10;
            if let Some(value) = node.value {
                array.units[at] |= LEAF;
                array.units[base] = VALUE | value;
            }
            for (label, child) in &node.children {
                let position = base ^ usize::from(*label);
                array.units[position] = u32::from(*label);
                open.push((*child, position));
            }
        }
        Some(array.units)
    }

    /// Takes a base from which every label leads to a free unit.
    fn place(&mut self, labels: &[u8]) -> Option<usize> {
        let first = self.units.len().saturating_sub(OPEN_BLOCKS * BLOCK);
        let fits = |base: &usize| {
            !self.bases.contains(base) && labels.iter().all(|label| !self.used[base ^ usize::from(*label)])
        };
        let base = match (first..self.units.len()).find(fits) {
            Some(base) => base,
            None => {
                let base = self.units.len();
                self.grow();
                base
            }
        };
        if self.units.len() > MAX_UNITS {
            return None;
        }
        self.bases.insert(base);
        labels.iter().for_each(|label| self.used[base ^ usize::from(*label)] = true);
        Some(base)
    }

    fn grow(&mut self) {
        let n = self.units.len() + BLOCK;
        self.units.resize(n, 0);
        self.used.resize(n, false);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// What the map makes of a character, by the format's rules; none when it has no rule.
    pub(crate) fn look_up(map: &[u8], c: char) -> Option<String> {
        let trie_bytes = u32::from_le_bytes(map[..4].try_into().unwrap()) as usize;
        let (trie, replacements) = map[4..].split_at(trie_bytes);
        let units: Vec<u32> = trie.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect();
        let offset = |unit: u32| ((unit >> 10) << ((unit & (1 << 9)) >> 6)) as usize;
        let mut at = offset(units[0]);
        let mut found = None;
        for byte in c.encode_utf8(&mut [0; 4]).bytes() {
            at ^= usize::from(byte);
            let unit = units[at];
            if unit & (VALUE | 0xff) != u32::from(byte) {
                return None;
            }
            at ^= offset(unit);
            found = (unit & LEAF != 0).then(|| (units[at] & !VALUE) as usize);
        }
        let text = &replacements[found?..];
        let end = text.iter().position(|b| *b == 0).unwrap();
        Some(String::from_utf8(text[..end].to_vec()).unwrap())
    }

    #[test]
    fn every_character_finds_its_own_rule_and_no_other() {
        let mut map = CharsMap::default();
        let mut expected = HashMap::new();
        // Dense and sparse rules over all lengths of UTF-8, with empty and shared replacements.
        for code in (1..0x3000u32).step_by(3).chain((0x1_0000..0x11_0000).step_by(997)) {
            if let Some(c) = char::from_u32(code) {
                let to = if code % 5 == 0 { String::new() } else { format!("{}é", code % 40) };
                map.insert(c, to.clone());
                expected.insert(c, to);
            }
        }
        let bytes = map.to_bytes().unwrap();
        for c in (1..0x11_0000).filter_map(char::from_u32) {
            assert_eq!(look_up(&bytes, c).as_ref(), expected.get(&c), "{:#x}", u32::from(c));
        }
    }

    #[test]
    fn no_rules_are_a_map_that_changes_nothing() {
        let bytes = CharsMap::default().to_bytes().unwrap();
        assert_eq!(look_up(&bytes, 'a'), None);
    }
}
