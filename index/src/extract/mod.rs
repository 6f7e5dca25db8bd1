//! Bytes of a file → readable text with its outline. Pure functions over bytes; no paths are opened here.

pub(crate) mod charset;
pub(crate) mod formats;

use std::path::Path;

use crate::types::{Kind, State};

/// Bounds an extractor keeps.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of text it may return.
    pub text_bytes_max: usize,
    /// Headings it may return.
    pub headings_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { text_bytes_max: crate::limits::TEXT_BYTES_MAX, headings_max: crate::limits::HEADINGS_MAX }
    }
}

/// The readable text of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extracted {
    /// The text; spans of passages point into it.
    pub text: String,
    /// Whether `text` is the file byte for byte, so that spans point into the file itself.
    pub in_file: bool,
    /// A title that the document itself declares.
    pub title: Option<String>,
    /// Words that describe the document without being part of its text, such as tags.
    pub keywords: Vec<String>,
    /// The outline, in the order of the text.
    pub headings: Vec<Heading>,
    /// Name of the charset the file was read in.
    pub charset: &'static str,
}

/// A heading in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    /// First byte of its line in the text.
    pub start: usize,
    /// 1 for the outermost.
    pub level: u8,
    /// Its words.
    pub text: String,
}

/// Why a file gives no text. This is data for the person, not an error of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// How the file is listed.
    pub state: State,
    /// The reason, in words.
    pub reason: String,
}

impl Refusal {
    pub(crate) fn failed(reason: impl Into<String>) -> Self {
        Self { state: State::Failed, reason: reason.into() }
    }

    pub(crate) fn excluded(reason: impl Into<String>) -> Self {
        Self { state: State::Excluded, reason: reason.into() }
    }

    pub(crate) fn empty() -> Self {
        Self { state: State::Empty, reason: "the file holds no text".to_owned() }
    }
}

/// Extensions of formats that are known, are not text, and have no extractor yet.
const NO_EXTRACTOR_YET: &[&str] = &[
    "pdf", "doc", "docx", "ppt", "pptx", "xls", "xlsx", "odt", "ods", "odp", "epub", "eml", "mbox", "msg", "rtf",
    "one", "pages", "numbers", "key", "ipynb", "djvu", "mobi",
];

/// Extensions of media, archives and programs: there is no text to extract.
const NO_TEXT: &[&str] = &[
    "png",
    "jpg",
    "jpeg",
    "gif",
    "webp",
    "bmp",
    "tif",
    "tiff",
    "heic",
    "ico",
    "psd",
    "mp3",
    "m4a",
    "ogg",
    "opus",
    "flac",
    "wav",
    "mp4",
    "mkv",
    "mov",
    "avi",
    "webm",
    "zip",
    "gz",
    "xz",
    "bz2",
    "zst",
    "7z",
    "rar",
    "tar",
    "iso",
    "dmg",
    "jar",
    "exe",
    "dll",
    "so",
    "dylib",
    "a",
    "o",
    "class",
    "pyc",
    "wasm",
    "bin",
    "gguf",
    "safetensors",
    "sqlite",
    "db",
    "ttf",
    "otf",
    "woff",
    "woff2",
];

const CODE: &[&str] = &[
    "rs", "py", "js", "mjs", "ts", "tsx", "jsx", "c", "h", "cc", "cpp", "hpp", "java", "kt", "go", "rb", "php", "pl",
    "lua", "sh", "bash", "zsh", "fish", "ps1", "sql", "r", "jl", "swift", "scala", "hs", "ml", "clj", "ex", "erl",
    "cs", "dart", "vue", "css", "scss", "toml", "yaml", "yml", "ini", "cfg", "conf", "cmake", "nix", "el", "lisp",
    "vim", "proto",
];

const DATA: &[&str] = &["csv", "tsv", "json", "jsonl", "ndjson", "xml", "svg", "bib", "ics", "vcf", "srt", "vtt"];

/// What a file is by its name, or why it is not read at all.
pub(crate) fn kind_of(path: &Path) -> Result<Kind, Refusal> {
    let extension = path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).unwrap_or_default();
    let extension = extension.as_str();
    if NO_EXTRACTOR_YET.contains(&extension) {
        return Err(Refusal::excluded("no extractor for this kind yet"));
    }
    if NO_TEXT.contains(&extension) {
        return Err(Refusal::excluded("not a text document"));
    }
    Ok(match extension {
        "md" | "markdown" | "mdown" | "mkd" | "mdx" => Kind::Markdown,
        "html" | "htm" | "xhtml" => Kind::Html,
        _ if CODE.contains(&extension) => Kind::Code,
        _ if DATA.contains(&extension) => Kind::Data,
        _ => Kind::Text,
    })
}

/// Extracts the text of a file of that kind.
///
/// # Errors
/// A [`Refusal`] says how the file is to be listed and why.
pub fn extract(kind: Kind, bytes: &[u8], limits: &Limits) -> Result<Extracted, Refusal> {
    if bytes.is_empty() {
        return Err(Refusal::empty());
    }
    let extracted = match kind {
        Kind::Markdown => formats::markdown::extract(bytes, limits)?,
        Kind::Html => formats::html::extract(bytes, limits)?,
        Kind::Text | Kind::Code | Kind::Data => formats::plain::extract(bytes, limits)?,
        Kind::Other => return Err(Refusal::excluded("no extractor for this kind yet")),
    };
    if extracted.text.chars().all(|c| c.is_whitespace() || c == '\u{FEFF}' || c == '\0') {
        return Err(Refusal::empty());
    }
    Ok(extracted)
}

/// Collapses white space and cuts at a character boundary: for titles and headings, which come from untrusted text.
pub(crate) fn short(text: &str, bytes_max: usize) -> String {
    let mut out = String::new();
    for word in text.split_whitespace() {
        let space = usize::from(!out.is_empty());
        let room = bytes_max.saturating_sub(out.len() + space);
        if room == 0 {
            break;
        }
        if space == 1 {
            out.push(' ');
        }
        out.push_str(&word[..floor_boundary(word, room)]);
        if word.len() > room {
            break;
        }
    }
    out.trim_end().to_owned()
}

/// The largest character boundary at or below `at`.
pub(crate) fn floor_boundary(text: &str, at: usize) -> usize {
    if at >= text.len() {
        return text.len();
    }
    (0..=at).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_follow_the_name() {
        assert_eq!(kind_of(Path::new("a/B.MD")), Ok(Kind::Markdown));
        assert_eq!(kind_of(Path::new("x.htm")), Ok(Kind::Html));
        assert_eq!(kind_of(Path::new("README")), Ok(Kind::Text));
        assert_eq!(kind_of(Path::new("x.pdf")).unwrap_err().reason, "no extractor for this kind yet");
    }

    #[test]
    fn nothing_but_space_is_empty() {
        for bytes in [&b""[..], b" \n\t", b"\xEF\xBB\xBF"] {
            assert_eq!(extract(Kind::Text, bytes, &Limits::default()).unwrap_err().state, State::Empty);
        }
    }

    #[test]
    fn short_cuts_at_a_character() {
        assert_eq!(short("  two\n words ", 100), "two words");
        assert_eq!(short("日本語", 7), "日本");
        assert_eq!(short("ab cd", 3), "ab");
    }
}
