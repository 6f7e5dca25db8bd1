//! Code pages by their numbers, as the formats of Windows name them.

use encoding_rs::Encoding;

/// The upper half of the first code page of the PC.
const CP437: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{A0}";

/// The upper half of that of Western Europe.
const CP850: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒáíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐└┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊËÈıÍÎÏ┘┌█▄¦Ì▀ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u{AD}±‗¾¶§÷¸°¨·¹³²■\u{A0}";

/// How bytes become text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Codepage {
    /// One of the charsets that browsers know.
    Known(&'static Encoding),
    /// 128 characters above ASCII.
    Table(&'static str),
}

impl Codepage {
    /// What Western Europe and America use, and what is meant where nothing is said.
    pub(crate) const WESTERN: Self = Self::Known(encoding_rs::WINDOWS_1252);

    /// The code page of that number.
    pub(crate) fn of(number: u32) -> Option<Self> {
        Some(Self::Known(match number {
            437 => return Some(Self::Table(CP437)),
            850 | 858 => return Some(Self::Table(CP850)),
            866 => encoding_rs::IBM866,
            874 => encoding_rs::WINDOWS_874,
            932 => encoding_rs::SHIFT_JIS,
            936 | 54936 => encoding_rs::GB18030,
            949 | 1361 | 51949 => encoding_rs::EUC_KR,
            950 => encoding_rs::BIG5,
            1200 => encoding_rs::UTF_16LE,
            1201 => encoding_rs::UTF_16BE,
            1250 => encoding_rs::WINDOWS_1250,
            1251 => encoding_rs::WINDOWS_1251,
            1252 | 20127 | 28591 | 367 => encoding_rs::WINDOWS_1252,
            1253 => encoding_rs::WINDOWS_1253,
            1254 | 28599 => encoding_rs::WINDOWS_1254,
            1255 => encoding_rs::WINDOWS_1255,
            1256 => encoding_rs::WINDOWS_1256,
            1257 => encoding_rs::WINDOWS_1257,
            1258 => encoding_rs::WINDOWS_1258,
            10000 | 32768 => encoding_rs::MACINTOSH,
            10007 => encoding_rs::X_MAC_CYRILLIC,
            20866 => encoding_rs::KOI8_R,
            21866 => encoding_rs::KOI8_U,
            28592 => encoding_rs::ISO_8859_2,
            28595 => encoding_rs::ISO_8859_5,
            28597 => encoding_rs::ISO_8859_7,
            50220..=50222 => encoding_rs::ISO_2022_JP,
            51932 => encoding_rs::EUC_JP,
            65001 => encoding_rs::UTF_8,
            _ => return None,
        }))
    }

    /// The code page of a font's charset, as Windows numbers them. `None` where the font has the document's own.
    pub(crate) fn of_charset(charset: u32) -> Option<Self> {
        Self::of(match charset {
            77 => 10000,
            128 => 932,
            129 | 130 => 949,
            134 => 936,
            136 => 950,
            161 => 1253,
            162 => 1254,
            163 => 1258,
            177 => 1255,
            178 => 1256,
            186 => 1257,
            204 => 1251,
            222 => 874,
            238 => 1250,
            255 => 437,
            _ => return None,
        })
    }

    /// The text of these bytes; what is not valid becomes U+FFFD.
    pub(crate) fn decode(self, bytes: &[u8]) -> String {
        match self {
            Self::Known(encoding) => encoding.decode_without_bom_handling(bytes).0.into_owned(),
            Self::Table(upper) => bytes
                .iter()
                .map(
                    |&b| if b < 0x80 { char::from(b) } else { upper.chars().nth(usize::from(b - 0x80)).unwrap_or(' ') },
                )
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_whole() {
        for table in [CP437, CP850] {
            assert_eq!(table.chars().count(), 128);
        }
        assert_eq!(Codepage::Table(CP437).decode(b"a\x81\xE1"), "aüß");
        assert_eq!(Codepage::Table(CP850).decode(b"\x9B\xD0"), "øð");
        assert_eq!(Codepage::of(932).unwrap().decode(b"\x82\xA0"), "あ");
        assert_eq!(Codepage::of_charset(204).unwrap().decode(b"\xCC"), "М");
        assert_eq!(Codepage::of_charset(0), None);
    }
}
