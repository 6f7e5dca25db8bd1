//! Accents that are drawn as glyphs of their own, over the letter beside them in the stream: TeX with its old fonts.

use std::borrow::Cow;
use std::rc::Rc;

use unicode_normalization::UnicodeNormalization as _;

use super::content::Glyph;
use super::lines::along;

/// The mark that goes onto a letter, if the glyph is an accent that stands by itself.
pub(super) fn mark_of(glyph: &Glyph) -> Option<char> {
    let mut chars = glyph.text.chars();
    let (accent, None) = (chars.next()?, chars.next()) else { return None };
    Some(match accent {
        '`' | 'ˋ' => '\u{300}',
        '´' | 'ˊ' => '\u{301}',
        'ˆ' => '\u{302}',
        '˜' => '\u{303}',
        '¯' | 'ˉ' => '\u{304}',
        '˘' => '\u{306}',
        '˙' => '\u{307}',
        '¨' => '\u{308}',
        '˚' => '\u{30A}',
        '˝' => '\u{30B}',
        'ˇ' => '\u{30C}',
        '¸' => '\u{327}',
        '˛' => '\u{328}',
        _ => return None,
    })
}

/// The glyphs with such accents put onto the letters that they are drawn over; those that stand alone stay.
pub(super) fn put_on<'g>(glyphs: &[&'g Glyph], way: (f32, f32)) -> Vec<Cow<'g, Glyph>> {
    let middle = |glyph: &Glyph| along(glyph, way) + glyph.width / 2.0;
    let over = |accent: &Glyph, letter: &Glyph| {
        let is_letter = letter.text.chars().next().is_some_and(char::is_alphabetic);
        is_letter && (middle(accent) - middle(letter)).abs() < 0.3 * letter.em
    };
    let mut out: Vec<Cow<'g, Glyph>> = Vec::with_capacity(glyphs.len());
    let mut waiting: Option<char> = None;
    for (i, glyph) in glyphs.iter().enumerate() {
        if let Some(mark) = waiting.take() {
            out.push(Cow::Owned(Glyph { text: marked(&glyph.text, mark), ..(*glyph).clone() }));
            continue;
        }
        let Some(mark) = mark_of(glyph) else {
            out.push(Cow::Borrowed(glyph));
            continue;
        };
        if glyphs.get(i + 1).is_some_and(|next| over(glyph, next)) {
            waiting = Some(mark);
        } else if let Some(last) = out.last_mut().filter(|last| over(glyph, last)) {
            let text = marked(&last.text, mark);
            last.to_mut().text = text;
        } else {
            out.push(Cow::Borrowed(glyph));
        }
    }
    out
}

fn marked(letter: &str, mark: char) -> Rc<str> {
    let mut chars = letter.chars();
    // An i and a j lose their dots under an accent.
    let first = match chars.next() {
        Some('ı') => Some('i'),
        Some('ȷ') => Some('j'),
        first => first,
    };
    let text: String = first.into_iter().chain([mark]).chain(chars).nfc().collect();
    Rc::from(text)
}
