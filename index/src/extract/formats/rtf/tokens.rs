//! The bytes of an RTF file → its tokens.

/// One token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Open,
    Close,
    /// `\word` or `\word-12`.
    Word(&'a [u8], Option<i32>),
    /// `\` and a sign that is no letter.
    Symbol(u8),
    /// `\'e4`.
    Byte(u8),
    /// What stands between.
    Text(&'a [u8]),
}

/// Letters of a control word; the standard allows 32.
const WORD_BYTES_MAX: usize = 40;

/// Goes through the tokens of a file.
pub(super) struct Tokens<'a> {
    rest: &'a [u8],
}

impl<'a> Tokens<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Passes over binary data. More than there is is all there is.
    pub fn pass_over(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    fn control(&mut self) -> Option<Token<'a>> {
        let (&first, rest) = self.rest.split_first()?;
        if !first.is_ascii_alphabetic() {
            self.rest = rest;
            if first == b'\'' {
                let hex = rest.get(..2).and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
                if let Some(byte) = hex {
                    self.rest = &rest[2..];
                    return Some(Token::Byte(byte));
                }
            }
            return Some(Token::Symbol(first));
        }
        let length = self.rest.iter().take(WORD_BYTES_MAX).take_while(|b| b.is_ascii_alphabetic()).count();
        let (word, mut rest) = self.rest.split_at(length);
        let negative = rest.first() == Some(&b'-') && rest.get(1).is_some_and(u8::is_ascii_digit);
        let digits = &rest[usize::from(negative)..];
        let count = digits.iter().take_while(|b| b.is_ascii_digit()).count();
        let mut number = None;
        if count > 0 {
            let value =
                digits[..count].iter().fold(0_i32, |n, d| n.saturating_mul(10).saturating_add(i32::from(d - b'0')));
            number = Some(if negative { -value } else { value });
            rest = &digits[count..];
        }
        self.rest = rest.strip_prefix(b" ").unwrap_or(rest);
        Some(Token::Word(word, number))
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let (&first, rest) = self.rest.split_first()?;
            match first {
                b'{' | b'}' => {
                    self.rest = rest;
                    return Some(if first == b'{' { Token::Open } else { Token::Close });
                }
                b'\\' => {
                    self.rest = rest;
                    return self.control();
                }
                // Line ends of the file are none of the text.
                b'\r' | b'\n' | 0 => self.rest = rest,
                _ => {
                    let end = self.rest.iter().position(|b| matches!(b, b'{' | b'}' | b'\\' | b'\r' | b'\n' | 0));
                    let (text, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
                    self.rest = rest;
                    return Some(Token::Text(text));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_told_apart() {
        let got: Vec<Token<'_>> = Tokens::new(b"{\\b0 x\r\ny\\'e4\\~\\u-5?\\par}\\u99999999999 ").collect();
        let want = [
            Token::Open,
            Token::Word(b"b", Some(0)),
            Token::Text(b"x"),
            Token::Text(b"y"),
            Token::Byte(0xE4),
            Token::Symbol(b'~'),
            Token::Word(b"u", Some(-5)),
            Token::Text(b"?"),
            Token::Word(b"par", None),
            Token::Close,
            Token::Word(b"u", Some(i32::MAX)),
        ];
        assert_eq!(got, want);
        assert_eq!(Tokens::new(b"\\").count() + Tokens::new(b"\\'").count() + Tokens::new(b"\\'z").count(), 3);
    }
}
