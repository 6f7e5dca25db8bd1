//! Text from tokens as they come: a token may end inside a character.

/// Holds back the bytes of an unfinished character.
#[derive(Debug, Default)]
pub struct Utf8Stream {
    rest: Vec<u8>,
}

impl Utf8Stream {
    /// Takes bytes and returns what is now whole. Bytes that can never become a character turn into U+FFFD.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.rest.extend_from_slice(bytes);
        let mut out = String::new();
        let mut used = 0;
        for chunk in self.rest.utf8_chunks() {
            out.push_str(chunk.valid());
            used += chunk.valid().len();
            let invalid = chunk.invalid();
            if invalid.is_empty() {
                continue;
            }
            let at_end = used + invalid.len() == self.rest.len();
            if at_end && could_continue(invalid) {
                break;
            }
            out.push(char::REPLACEMENT_CHARACTER);
            used += invalid.len();
        }
        self.rest.drain(..used);
        out
    }

    /// What is left at the end; an unfinished character becomes U+FFFD.
    pub fn finish(&mut self) -> String {
        let rest = std::mem::take(&mut self.rest);
        String::from_utf8_lossy(&rest).into_owned()
    }
}

/// Whether more bytes could complete this beginning of a character.
fn could_continue(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|e| e.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_cut_gives_the_same_text() {
        let text = "aé漢🙂 z";
        for width in 1..=5 {
            let mut stream = Utf8Stream::default();
            let mut out: String = text.as_bytes().chunks(width).map(|c| stream.push(c)).collect();
            out.push_str(&stream.finish());
            assert_eq!(out, text);
        }
    }

    #[test]
    fn broken_bytes_are_replaced_and_do_not_block() {
        let mut stream = Utf8Stream::default();
        assert_eq!(stream.push(b"a\xffb\xe6"), "a\u{fffd}b");
        assert_eq!(stream.push(b"\xbc\xa2!"), "漢!");
        assert_eq!(stream.push(b"\xe6\xbc"), "");
        assert_eq!(stream.finish(), "\u{fffd}");
    }
}
