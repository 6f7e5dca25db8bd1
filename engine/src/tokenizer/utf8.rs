//! Text out of a stream of bytes that is cut anywhere, as tokens cut it.

/// Turns pieces of UTF-8 into text. At most three bytes of an unfinished character are held back.
#[derive(Debug, Default, Clone)]
pub struct Utf8Stream {
    held: Vec<u8>,
}

impl Utf8Stream {
    /// Takes more bytes and gives all the text that is complete. What can never become a character is U+FFFD.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.held.extend_from_slice(bytes);
        let mut text = String::with_capacity(self.held.len());
        let mut done = 0;
        for chunk in self.held.utf8_chunks() {
            text.push_str(chunk.valid());
            done += chunk.valid().len();
            let bad = chunk.invalid();
            if bad.is_empty() || (done + bad.len() == self.held.len() && may_continue(bad)) {
                break;
            }
            text.push(char::REPLACEMENT_CHARACTER);
            done += bad.len();
        }
        self.held.drain(..done);
        text
    }

    /// Ends the stream: an unfinished character is U+FFFD.
    pub fn finish(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        String::from_utf8_lossy(&held).into_owned()
    }
}

/// Whether more bytes could complete this beginning of a character.
fn may_continue(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|e| e.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_cut_gives_the_same_text() {
        let text = "aß→𝄞 你好 e\u{301}\u{200d}🏳️‍🌈 end";
        for step in 1..7 {
            let mut stream = Utf8Stream::default();
            let mut out: String = text.as_bytes().chunks(step).map(|c| stream.push(c)).collect();
            out += &stream.finish();
            assert_eq!(out, text, "pieces of {step}");
        }
    }

    #[test]
    fn what_comes_out_byte_by_byte_equals_the_lossy_reading_of_the_whole() {
        // All triples of awkward bytes, between ASCII.
        let awkward = [0x41, 0x80, 0xbf, 0xc0, 0xc3, 0xe0, 0xe2, 0xed, 0xef, 0xf0, 0xf4, 0xf5, 0xff];
        for a in awkward {
            for b in awkward {
                for c in awkward {
                    let bytes = [b'x', a, b, c, b'y', a, b];
                    let mut stream = Utf8Stream::default();
                    let mut out: String = bytes.iter().map(|b| stream.push(&[*b])).collect();
                    out += &stream.finish();
                    assert_eq!(out, String::from_utf8_lossy(&bytes), "{bytes:x?}");
                }
            }
        }
    }

    #[test]
    fn an_unfinished_character_is_held_back_and_no_more() {
        let mut stream = Utf8Stream::default();
        assert_eq!(stream.push(b"ab\xf0\x9f\x98"), "ab");
        assert_eq!(stream.push(b"\x80c"), "😀c");
        assert_eq!(stream.push(b"\xe4\xbd"), "");
        assert_eq!(stream.push(b"z"), "\u{fffd}z");
        assert_eq!(stream.finish(), "");
    }
}
