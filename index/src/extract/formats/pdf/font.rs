//! What the codes of a font mean: their Unicode and how far they move on.
//!
//! The library gives what a font says of itself (`ToUnicode`, glyph names, the maps of CJK fonts that are not embedded).
//! Where it says nothing, the character collection of the font and the tables of the embedded program are asked.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use hayro_cmap::{BfString, CMap, CMapName, CidFamily, load_embedded};
use hayro_font::{CMapResolverFn, Font, FontCache, FontGlyph, FontQuery, FontResolverFn, StandardFont};
use hayro_syntax::object::{Array, Dict, Name, Object, Stream, String as PdfString};
use skrifa::MetadataProvider as _;
use unicode_normalization::UnicodeNormalization as _;

use super::stream;

/// Codes remembered of one font; a font has at most 65,536.
const CODES_MAX: usize = 1 << 16;

/// One code of a string.
#[derive(Debug, Clone)]
pub(super) struct Code {
    /// Its text; empty where none is known.
    pub text: Rc<str>,
    /// Advance in thousandths of the font's size; along the line, whichever way the font is written.
    pub advance: f64,
    /// Whether the spacing between words applies.
    pub space: bool,
}

/// The fonts of a document.
pub(super) struct Fonts<'a> {
    cache: FontCache<'a>,
    programs: FontResolverFn,
    maps: CMapResolverFn,
    known: HashMap<(u32, i32), Option<Rc<PdfFont<'a>>>>,
}

impl<'a> Fonts<'a> {
    pub fn new() -> Self {
        Self {
            cache: FontCache::new(),
            programs: Arc::new(|query| match query {
                FontQuery::Standard(font) => Some(font.get_font_data()),
                FontQuery::Fallback(fallback) => Some(fallback.pick_standard_font().get_font_data()),
            }),
            maps: Arc::new(load_embedded),
            known: HashMap::new(),
        }
    }

    /// The font of that dictionary.
    pub fn get(&mut self, dict: &Dict<'a>) -> Option<Rc<PdfFont<'a>>> {
        let id = dict.obj_id().map(|id| (id.obj_number, id.gen_number));
        if let Some(known) = id.and_then(|id| self.known.get(&id)) {
            return known.clone();
        }
        let font = self.load(dict).map(Rc::new);
        if let Some(id) = id {
            self.known.insert(id, font.clone());
        }
        font
    }

    /// What is used where a page names no font, or one that does not exist.
    pub fn standard(&self) -> Option<PdfFont<'a>> {
        let font = self.cache.standard_font(StandardFont::Helvetica, &self.programs)?;
        Some(PdfFont::new(font, &Dict::empty()))
    }

    fn load(&self, dict: &Dict<'a>) -> Option<PdfFont<'a>> {
        if !streams_fit(dict) || !widths_fit(dict) {
            return None;
        }
        let font = self.cache.font(dict, &self.programs, &self.maps)?;
        Some(PdfFont::new(font, dict))
    }
}

/// Whether all that the library would unpack for this font stays within the bound.
fn streams_fit(dict: &Dict<'_>) -> bool {
    let descendant = dict.get::<Array<'_>>("DescendantFonts").and_then(|a| a.iter::<Dict<'_>>().next());
    let owners = [Some(dict.clone()), descendant];
    owners.iter().flatten().all(|owner| {
        let descriptor = owner.get::<Dict<'_>>("FontDescriptor").unwrap_or_default();
        let of = |dict: &Dict<'_>, keys: &[&str]| {
            keys.iter().all(|key| dict.get::<Stream<'_>>(key).is_none_or(|stream| stream::fits(&stream)))
        };
        of(owner, &["ToUnicode", "Encoding", "CIDToGIDMap"]) && of(&descriptor, &["FontFile", "FontFile2", "FontFile3"])
    })
}

/// Whether the tables of widths name no more codes than fonts have: the library fills a range code by code.
fn widths_fit(dict: &Dict<'_>) -> bool {
    let first = dict.get::<Object<'_>>("FirstChar");
    if first.is_some_and(|n| n.into_number().is_some_and(|n| !(0..=255).contains(&n.as_i64()))) {
        return false;
    }
    let Some(descendant) = dict.get::<Array<'_>>("DescendantFonts").and_then(|a| a.iter::<Dict<'_>>().next()) else {
        return true;
    };
    ["W", "W2"].iter().all(|key| descendant.get::<Array<'_>>(key).is_none_or(|table| ranges_fit(&table)))
}

/// Two numbers in a row are a range of codes, or such a range is read out of what follows; a list has its own length.
fn ranges_fit(table: &Array<'_>) -> bool {
    let (mut total, mut before) = (0_i64, None);
    for item in table.iter::<Object<'_>>() {
        let number = item.into_number().map(|n| n.as_i64());
        if let (Some(first), Some(last)) = (before, number)
            && last > first
        {
            total = total.saturating_add(last.saturating_sub(first));
        }
        before = number;
    }
    // A width behind a range can look like the end of one; each adds a few thousand at most.
    total <= 16 * CODES_MAX as i64
}

/// A font as a content stream uses it.
pub(super) struct PdfFont<'a> {
    font: Font<'a>,
    pub vertical: bool,
    /// The height of its letters in thousandths of its size: 1000, but for fonts that are drawn by hand.
    pub em: f64,
    collection: Option<Collection>,
    /// Characters of the embedded program's glyphs, read when first needed.
    by_glyph: RefCell<Option<HashMap<u32, char>>>,
    /// A charset that the bytes are in, where a font of single bytes is used for a script of many characters.
    charset: Option<&'static encoding_rs::Encoding>,
    /// Codes whose glyphs have no name but their own number.
    numbered: HashSet<u32>,
    codes: RefCell<HashMap<u32, Code>>,
}

impl<'a> PdfFont<'a> {
    fn new(font: Font<'a>, dict: &Dict<'_>) -> Self {
        let subtype = dict.get::<Name<'_>>("Subtype");
        let is = |name: &[u8]| subtype.as_ref().is_some_and(|s| s.as_ref() == name);
        let em = if is(b"Type3") { drawn_em(&font) } else { 1000.0 };
        Self {
            vertical: !font.is_horizontal(),
            em,
            collection: is(b"Type0").then(|| Collection::of(dict)).flatten(),
            by_glyph: RefCell::new(None),
            charset: if is(b"Type0") || is(b"Type3") { None } else { byte_charset(dict) },
            numbered: numbered(dict),
            codes: RefCell::new(HashMap::new()),
            font,
        }
    }

    /// The codes of a string, one after the other.
    pub fn decode(&self, bytes: &[u8], mut each: impl FnMut(Code)) {
        let mut at = 0;
        while at < bytes.len() {
            if let Some((code, length)) = self.many_bytes(&bytes[at..]) {
                each(code);
                at += length;
                continue;
            }
            let (code, length) = self.font.read_code(bytes, at);
            let length = length.max(1);
            let mut known = self.codes.borrow_mut();
            let found = match known.get(&code) {
                Some(found) => found.clone(),
                None => {
                    let made = self.read(code, &bytes[at..bytes.len().min(at + length)]);
                    if known.len() < CODES_MAX {
                        known.insert(code, made.clone());
                    }
                    made
                }
            };
            drop(known);
            each(Code { space: length == 1 && code == 32, ..found });
            at += length;
        }
    }

    /// A character of two bytes in a font of single bytes.
    fn many_bytes(&self, bytes: &[u8]) -> Option<(Code, usize)> {
        let charset = self.charset?;
        let pair = bytes.get(..2).filter(|pair| pair[0] >= 0x81)?;
        let (text, faults) = charset.decode_without_bom_handling(pair);
        if faults || text.chars().count() != 1 {
            return None;
        }
        let advance = pair.iter().map(|&b| self.font.code_advance(u32::from(b)).x).sum();
        Some((Code { text: Rc::from(&*text), advance, space: false }, 2))
    }

    fn read(&self, code: u32, bytes: &[u8]) -> Code {
        let advance = self.font.code_advance(code);
        let text = self.text(code, bytes).map(|text| readable(&text)).unwrap_or_default();
        let advance = if self.vertical { advance.y } else { advance.x };
        Code { text: Rc::from(text), advance: if advance.is_finite() { advance } else { 0.0 }, space: false }
    }

    fn text(&self, code: u32, bytes: &[u8]) -> Option<String> {
        let id = self.font.map_code(code);
        let glyph = self.font.glyph(id, code);
        let said = match &glyph {
            FontGlyph::Outline(glyph) => glyph.as_unicode(),
            FontGlyph::Type3(glyph) => glyph.as_unicode(),
        };
        let said = said.map(|text| match text {
            BfString::Char(c) => c.to_string(),
            BfString::String(text) => text,
        });
        if let Some(text) = said.filter(|text| text.chars().any(is_text)) {
            return Some(text);
        }
        if let Some(text) = self.collection.as_ref().and_then(|c| c.text(code, bytes)) {
            return Some(text);
        }
        if self.numbered.contains(&code) {
            return Some(encoding_rs::WINDOWS_1252.decode_without_bom_handling(bytes).0.into_owned());
        }
        let FontGlyph::Outline(outline) = glyph else { return None };
        let mut by_glyph = self.by_glyph.borrow_mut();
        let map = by_glyph.get_or_insert_with(|| match outline.font_data() {
            Some(program) => characters_of_glyphs((*program.data).as_ref()),
            None => HashMap::new(),
        });
        map.get(&id.to_u32()).map(char::to_string)
    }
}

/// Letters of fonts that are drawn by hand are as wide as their matrix says; half an em on average, as in other fonts.
fn drawn_em(font: &Font<'_>) -> f64 {
    let widths: Vec<f64> = (0..256).map(|c| font.code_advance(c).x.abs()).filter(|w| *w > 0.0).collect();
    if widths.is_empty() { 1000.0 } else { 2.0 * widths.iter().sum::<f64>() / widths.len() as f64 }
}

/// Codes whose glyphs are called `a228` for code 228 and the like: TeX and others name the letters of drawn fonts so,
/// and keep the codes of the usual Latin encoding.
fn numbered(dict: &Dict<'_>) -> HashSet<u32> {
    let differences = dict.get::<Dict<'_>>("Encoding").and_then(|e| e.get::<Array<'_>>("Differences"));
    let mut out = HashSet::new();
    let mut code = 0_u32;
    for item in differences.iter().flat_map(|d| d.iter::<Object<'_>>()).take(CODES_MAX) {
        match item {
            Object::Number(number) => code = u32::try_from(number.as_i64()).unwrap_or(0),
            Object::Name(name) => {
                let number = name.as_str().trim_start_matches(|c: char| c.is_ascii_alphabetic()).parse::<u32>();
                if (0x20..=0xFF).contains(&code) && number == Ok(code) {
                    out.insert(code);
                }
                code = code.saturating_add(1);
            }
            _ => {}
        }
    }
    out
}

/// A font without a map to Unicode whose name says which charset its bytes are in: old Chinese, Japanese and Korean
/// systems wrote two bytes a character with fonts of single bytes.
fn byte_charset(dict: &Dict<'_>) -> Option<&'static encoding_rs::Encoding> {
    let descriptor = dict.get::<Dict<'_>>("FontDescriptor").unwrap_or_default();
    let embedded = ["FontFile", "FontFile2", "FontFile3"].iter().any(|key| descriptor.contains_key(key));
    if embedded || dict.contains_key("ToUnicode") || dict.get::<Dict<'_>>("Encoding").is_some() {
        return None;
    }
    let name = dict.get::<Name<'_>>("BaseFont")?;
    let name: &[u8] = name.as_ref();
    let plain = String::from_utf8_lossy(name);
    let plain = plain.split([',', '-', '+']).next().unwrap_or_default().to_ascii_lowercase();
    for (charset, names) in [
        (
            encoding_rs::GBK,
            &["simsun", "nsimsun", "simhei", "kaiti", "kaiti_gb2312", "fangsong", "fangsong_gb2312"][..],
        ),
        (encoding_rs::BIG5, &["mingliu", "pmingliu", "dfkai"][..]),
        (encoding_rs::SHIFT_JIS, &["msgothic", "mspgothic", "msmincho", "mspmincho"][..]),
        (encoding_rs::EUC_KR, &["batang", "gulim", "dotum", "gungsuh"][..]),
    ] {
        if names.contains(&plain.as_str()) {
            return Some(charset);
        }
    }
    if name.is_ascii() {
        return None;
    }
    // The name itself in that charset: `宋体`, `楷体_GB2312`, `細明體`, `ＭＳ 明朝`, `바탕`.
    for (charset, names) in [
        (encoding_rs::GBK, &["宋", "黑", "楷", "仿", "隶", "幼", "华文", "方正"][..]),
        (encoding_rs::BIG5, &["細明", "新細", "標楷"][..]),
        (encoding_rs::SHIFT_JIS, &["ＭＳ", "明朝", "ゴシック"][..]),
        (encoding_rs::EUC_KR, &["바탕", "굴림", "돋움", "궁서"][..]),
    ] {
        let (decoded, faults) = charset.decode_without_bom_handling(name);
        if !faults && names.iter().any(|start| decoded.trim_start_matches('@').starts_with(start)) {
            return Some(charset);
        }
    }
    None
}

/// The character collection of a composite font: its codes are characters of Chinese, Japanese or Korean, whatever the
/// embedded program says.
struct Collection {
    encoding: CMap,
    to_unicode: CMap,
}

impl Collection {
    fn of(dict: &Dict<'_>) -> Option<Self> {
        let encoding = match dict.get::<Object<'_>>("Encoding")? {
            Object::Name(name) if matches!(name.as_ref(), b"Identity-H" | b"Identity-V") => CMap::identity_h(),
            Object::Name(name) => CMap::parse(load_embedded(CMapName::from_bytes(name.as_ref()))?, load_embedded)?,
            Object::Stream(map) => CMap::parse(&stream::unpack(&map)?, load_embedded)?,
            _ => return None,
        };
        let descendant = dict.get::<Array<'_>>("DescendantFonts")?.iter::<Dict<'_>>().next()?;
        let info = descendant.get::<Dict<'_>>("CIDSystemInfo").unwrap_or_default();
        let word = |key| info.get::<PdfString<'_>>(key).map(|s| s.as_bytes().to_vec()).unwrap_or_default();
        let family = CidFamily::from_registry_ordering(&word("Registry"), &word("Ordering"));
        let own = || Some(encoding.metadata().character_collection.as_ref()?.family.clone());
        let name = family.ucs2_cmap().or_else(|| own()?.ucs2_cmap())?;
        let to_unicode = CMap::parse(load_embedded(name)?, load_embedded)?;
        Some(Self { encoding, to_unicode })
    }

    fn text(&self, code: u32, bytes: &[u8]) -> Option<String> {
        let length = u8::try_from(bytes.len()).ok()?;
        let cid = self.encoding.lookup_cid_code(code, length)?;
        match self.to_unicode.lookup_bf_string(cid)? {
            BfString::Char(c) => Some(c.to_string()),
            BfString::String(text) => Some(text),
        }
    }
}

/// The characters that an embedded program has its glyphs for.
fn characters_of_glyphs(program: &[u8]) -> HashMap<u32, char> {
    let Ok(font) = skrifa::FontRef::new(program) else { return HashMap::new() };
    let mut out = HashMap::new();
    for (character, glyph) in font.charmap().mappings().take(2 * CODES_MAX) {
        if let Some(c) = char::from_u32(character).filter(|c| is_text(*c)) {
            // The first is the lower and plainer one.
            out.entry(glyph.to_u32()).or_insert(c);
        }
    }
    out
}

/// Whether a font's word for a character can be taken for text.
fn is_text(c: char) -> bool {
    !c.is_control() && c != '\u{FFFD}' && !('\u{E000}'..='\u{F8FF}').contains(&c) && c != '\u{FEFF}'
}

/// Ligatures and letter forms taken apart into the letters a person would type.
fn readable(text: &str) -> String {
    // No glyph shows alef before lam; the ligature is lam-alef, written by the maker in the order seen.
    let mut chars = text.chars();
    if let (Some(alef @ ('ا' | 'أ' | 'إ' | 'آ' | 'ٱ')), Some('ل'), None) = (chars.next(), chars.next(), chars.next())
    {
        return ['ل', alef].iter().collect();
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars().filter(|c| is_text(*c)) {
        match c {
            '\u{FB00}'..='\u{FB06}' | '\u{FB1D}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFC}' => out.extend(c.nfkc()),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ligatures_come_apart_in_reading_order() {
        assert_eq!(readable("ﬁ"), "fi");
        assert_eq!(readable("ﻻ"), "لا");
        assert_eq!(readable("إل"), "لإ");
        assert_eq!(readable("a\u{0}\u{FFFD}"), "a");
    }
}
