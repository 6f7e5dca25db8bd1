//! Quotations by construction: once the model has opened quotation marks, only bytes of a passage can follow until it closes
//! them. What stands between quotation marks in an answer is therefore in a document, letter for letter.

/// Opening and closing marks. German quotations end with what opens English ones, so an opening mark decides what closes.
const MARKS: [(&str, &str); 6] = [("\"", "\""), ("“", "”"), ("„", "“"), ("«", "»"), ("「", "」"), ("『", "』")];

/// Follows the bytes of an answer and tells which may come next.
#[derive(Debug, Clone)]
pub struct Quoting<'a> {
    passages: &'a [&'a str],
    state: State,
    /// The last bytes outside of quotations, as many as an opening mark may be split into.
    before: Vec<u8>,
}

#[derive(Debug, Clone)]
enum State {
    Outside,
    /// Between quotation marks.
    Inside {
        closing: &'static str,
        /// Where the quotation may go on: passage and byte.
        at: Vec<(usize, usize)>,
        /// Bytes of the closing mark already there.
        closed: usize,
        /// Nothing is quoted yet.
        empty: bool,
    },
}

impl<'a> Quoting<'a> {
    /// Quotations from these passages.
    pub fn new(passages: &'a [&'a str]) -> Self {
        Self { passages, state: State::Outside, before: Vec::new() }
    }

    /// Whether `bytes` may come next.
    pub fn allows(&self, bytes: &[u8]) -> bool {
        match &self.state {
            State::Outside if !bytes.iter().any(|b| opens(*b)) => true,
            _ => {
                let mut ahead = self.clone();
                bytes.iter().all(|b| ahead.step(*b))
            }
        }
    }

    /// Whether the answer may end here.
    pub fn may_end(&self) -> bool {
        matches!(self.state, State::Outside)
    }

    /// Takes what came next.
    pub fn push(&mut self, bytes: &[u8]) {
        for b in bytes {
            self.step(*b);
        }
    }

    /// Takes a byte; false where none of the passages goes on so.
    fn step(&mut self, byte: u8) -> bool {
        let State::Inside { closing, at, closed, empty } = &mut self.state else {
            self.outside(byte);
            return true;
        };
        let closing = closing.as_bytes();
        let next =
            if closing[*closed] == byte && !*empty { *closed + 1 } else { usize::from(closing[0] == byte && !*empty) };
        at.retain_mut(|(passage, byte_at)| {
            let goes_on = self.passages[*passage].as_bytes().get(*byte_at) == Some(&byte);
            *byte_at += 1;
            goes_on
        });
        *closed = next;
        *empty = false;
        let possible = next > 0 || !at.is_empty();
        if next == closing.len() || !possible {
            self.state = State::Outside;
            self.before.clear();
        }
        possible
    }

    fn outside(&mut self, byte: u8) {
        self.before.push(byte);
        let mark = MARKS.iter().find(|(opening, _)| self.before.ends_with(opening.as_bytes()));
        if let Some((opening, closing)) = mark {
            // 5" is a length.
            let digit =
                self.before.len() > 1 && self.before[self.before.len() - 2].is_ascii_digit() && *opening == "\"";
            if !digit {
                let starts = self.passages.iter().enumerate().flat_map(|(p, text)| {
                    let inside = text.char_indices().filter(|(at, _)| !text[*at..].starts_with(closing));
                    inside.map(move |(at, _)| (p, at))
                });
                self.state = State::Inside { closing, at: starts.collect(), closed: 0, empty: true };
            }
        }
        if self.before.len() > 4 {
            self.before.remove(0);
        }
    }
}

/// Whether an opening mark may have this byte. Those beyond ASCII share too many to tell.
fn opens(byte: u8) -> bool {
    byte == b'"' || !byte.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSAGES: [&str; 2] = ["The landlord is \"Marta Olsen\" of Ålesund.", "租金是每月1200欧元。"];

    fn after(text: &str) -> Quoting<'static> {
        let mut quoting = Quoting::new(&PASSAGES);
        quoting.push(text.as_bytes());
        quoting
    }

    #[test]
    fn between_quotation_marks_only_a_passage_goes_on() {
        for (before, next, allowed) in [
            ("It says ", "anything", true),
            ("It says ", " \"The landlord", true),
            ("It says ", " \"The tenant", false),
            ("It says \"", "landlord is", true),
            ("It says \"", "\"", false),
            ("It says \"land", "lord is", true),
            ("It says \"land", "lady", false),
            ("It says \"landlord", "\" and so on", true),
            ("It says \"landlord\"", " and so on", true),
            ("It says “landlord is ", "\"Marta", true),
            ("It says “landlord", "”, so", true),
            ("Es heißt „租金是每月", "1200欧元", true),
            ("Es heißt „租金是每月", "1300", false),
            ("Es heißt „租金是每月1200", "“.", true),
            ("它说「租金", "」。", true),
            ("5\" wide", " or more", true),
        ] {
            assert_eq!(after(before).allows(next.as_bytes()), allowed, "{before} + {next}");
        }
    }

    #[test]
    fn a_quotation_is_closed_before_the_answer_ends() {
        assert!(after("Nothing quoted").may_end());
        assert!(!after("It says \"land").may_end());
        assert!(after("It says \"land\"").may_end());
    }

    #[test]
    fn marks_may_come_byte_by_byte() {
        let mut quoting = Quoting::new(&PASSAGES);
        for byte in "“landlord”".bytes() {
            assert!(quoting.allows(&[byte]));
            quoting.push(&[byte]);
        }
        assert!(quoting.may_end());
    }
}
