//! Which format a file has.

use std::path::Path;

use super::{Refusal, sniff};
use crate::types::Kind;

/// A format that an extractor reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Plain text.
    Text,
    /// Markdown.
    Markdown,
    /// HTML.
    Html,
    /// Source code and configuration.
    Code,
    /// Structured text: CSV, JSON, XML.
    Data,
    /// Word's text document, packed XML.
    Docx,
    /// PowerPoint's slides, packed XML.
    Pptx,
    /// Excel's workbook, packed XML.
    Xlsx,
    /// A document of Word, PowerPoint or Excel that needs a password.
    LockedOffice,
    /// OpenDocument text.
    Odt,
    /// OpenDocument sheets.
    Ods,
    /// OpenDocument slides and drawings.
    Odp,
    /// A mail as it was sent.
    Eml,
    /// A mailbox: mails one after another.
    Mbox,
    /// A book.
    Epub,
    /// A saved web page with its pictures.
    Mhtml,
    /// A notebook of Jupyter.
    Notebook,
    /// Pages, Numbers and Keynote.
    IWork,
    /// A ZIP archive.
    Zip,
    /// One file packed by gzip.
    Gzip,
    /// Org.
    Org,
    /// LaTeX.
    Latex,
    /// reStructuredText.
    Rst,
    /// PDF.
    Pdf,
    /// Rich text.
    Rtf,
    /// Word 6 to 2003.
    Doc,
    /// Excel 5 to 2003.
    Xls,
    /// PowerPoint 97 to 2003.
    Ppt,
    /// A mail of Outlook.
    Msg,
}

/// Extensions of formats that are known, are not text, and have no extractor yet.
const NO_EXTRACTOR_YET: &[&str] = &["one", "djvu", "mobi"];

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

impl Format {
    /// The format that the name says, or why such a file is not read at all.
    ///
    /// # Errors
    /// It is a kind of file that is left out.
    pub fn of_name(name: &Path) -> Result<Self, Refusal> {
        let extension = name.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).unwrap_or_default();
        let extension = extension.as_str();
        if NO_EXTRACTOR_YET.contains(&extension) {
            return Err(Refusal::excluded("no extractor for this kind yet"));
        }
        if NO_TEXT.contains(&extension) {
            return Err(Refusal::excluded("not a text document"));
        }
        Ok(match extension {
            "md" | "markdown" | "mdown" | "mkd" | "mdx" => Self::Markdown,
            "pdf" => Self::Pdf,
            "rtf" => Self::Rtf,
            "doc" | "dot" => Self::Doc,
            "xls" | "xlt" => Self::Xls,
            "ppt" | "pps" | "pot" => Self::Ppt,
            "msg" => Self::Msg,
            "html" | "htm" | "xhtml" => Self::Html,
            "docx" | "docm" | "dotx" | "dotm" => Self::Docx,
            "pptx" | "pptm" | "ppsx" | "ppsm" | "potx" | "potm" => Self::Pptx,
            "xlsx" | "xlsm" | "xltx" | "xltm" => Self::Xlsx,
            "odt" | "ott" | "odm" | "fodt" => Self::Odt,
            "ods" | "ots" | "fods" => Self::Ods,
            "odp" | "otp" | "odg" | "fodp" | "fodg" => Self::Odp,
            "epub" => Self::Epub,
            "mht" | "mhtml" => Self::Mhtml,
            "ipynb" => Self::Notebook,
            "pages" | "numbers" | "key" => Self::IWork,
            "zip" => Self::Zip,
            "gz" => Self::Gzip,
            "org" => Self::Org,
            "tex" | "ltx" | "latex" => Self::Latex,
            "rst" => Self::Rst,
            "eml" | "emlx" => Self::Eml,
            "mbox" | "mbx" => Self::Mbox,
            _ if CODE.contains(&extension) => Self::Code,
            _ if DATA.contains(&extension) => Self::Data,
            _ => Self::Text,
        })
    }

    /// The format of these bytes under this name: what the bytes say comes first.
    ///
    /// # Errors
    /// It is a kind of file that is left out.
    pub fn of(name: &Path, bytes: &[u8]) -> Result<Self, Refusal> {
        sniff::format_of(name, bytes).map_or_else(|| Self::of_name(name), Ok)
    }

    /// Whether its files are packed as ZIP.
    pub(crate) fn is_packed(self) -> bool {
        use Format::{Docx, Epub, IWork, Odp, Ods, Odt, Pptx, Xlsx, Zip};
        matches!(self, Docx | Pptx | Xlsx | Odt | Ods | Odp | Epub | IWork | Zip)
    }

    /// The kind of document it makes, as filters and listings name it.
    #[must_use]
    pub fn kind(self) -> Kind {
        match self {
            Self::Text | Self::Org | Self::Latex | Self::Rst => Kind::Text,
            Self::Markdown => Kind::Markdown,
            Self::Html | Self::Mhtml => Kind::Html,
            Self::Code => Kind::Code,
            Self::Data => Kind::Data,
            Self::Docx | Self::Odt | Self::LockedOffice | Self::Rtf | Self::Doc => Kind::Document,
            Self::Xlsx | Self::Ods | Self::Xls => Kind::Spreadsheet,
            Self::Pptx | Self::Odp | Self::Ppt => Kind::Presentation,
            Self::Eml | Self::Mbox | Self::Msg => Kind::Mail,
            Self::Epub => Kind::Book,
            Self::Notebook => Kind::Notebook,
            Self::IWork => Kind::Document,
            Self::Zip | Self::Gzip => Kind::Archive,
            Self::Pdf => Kind::Pdf,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_follow_the_name() {
        assert_eq!(Format::of_name(Path::new("a/B.MD")), Ok(Format::Markdown));
        assert_eq!(Format::of_name(Path::new("x.htm")), Ok(Format::Html));
        assert_eq!(Format::of_name(Path::new("README")), Ok(Format::Text));
        assert_eq!(Format::of_name(Path::new("x.djvu")).unwrap_err().reason, "no extractor for this kind yet");
    }
}
