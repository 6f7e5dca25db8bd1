//! The nouns of the index: plain data, no behaviour beyond naming itself, deliberately not serialisable.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a document is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
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
    /// Something no extractor reads.
    Other,
    /// PDF.
    Pdf,
    /// A text document: DOCX, DOC, ODT, RTF.
    Document,
    /// A workbook: XLSX, XLS, ODS.
    Spreadsheet,
    /// Slides: PPTX, PPT, ODP.
    Presentation,
    /// A mail or a mailbox: EML, mbox, MSG.
    Mail,
    /// A book: EPUB.
    Book,
    /// A notebook: ipynb.
    Notebook,
    /// An archive: ZIP.
    Archive,
}

impl Kind {
    /// All kinds, in the order of their stored numbers.
    pub const ALL: [Self; 14] = [
        Self::Text,
        Self::Markdown,
        Self::Html,
        Self::Code,
        Self::Data,
        Self::Other,
        Self::Pdf,
        Self::Document,
        Self::Spreadsheet,
        Self::Presentation,
        Self::Mail,
        Self::Book,
        Self::Notebook,
        Self::Archive,
    ];

    /// The name used in filters and listings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Markdown => "markdown",
            Self::Html => "html",
            Self::Code => "code",
            Self::Data => "data",
            Self::Other => "other",
            Self::Pdf => "pdf",
            Self::Document => "document",
            Self::Spreadsheet => "spreadsheet",
            Self::Presentation => "presentation",
            Self::Mail => "mail",
            Self::Book => "book",
            Self::Notebook => "notebook",
            Self::Archive => "archive",
        }
    }

    /// The kind of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    pub(crate) fn number(self) -> u8 {
        self as u8
    }

    pub(crate) fn from_number(number: i64) -> Self {
        usize::try_from(number).ok().and_then(|n| Self::ALL.get(n)).copied().unwrap_or(Self::Other)
    }
}

/// Where a known file stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Text and vectors are searchable.
    Indexed,
    /// Known, but text or vectors are still to come.
    Pending,
    /// Could not be read; the reason says why. Tried again when the file changes or a rescan is asked for.
    Failed,
    /// Needs a password.
    Locked,
    /// Holds images of text only.
    NeedsOcr,
    /// Holds no text.
    Empty,
    /// Not indexed on purpose; the reason says why.
    Excluded,
}

impl State {
    /// All states, in the order of their stored numbers.
    pub const ALL: [Self; 7] =
        [Self::Indexed, Self::Pending, Self::Failed, Self::Locked, Self::NeedsOcr, Self::Empty, Self::Excluded];

    /// The name used in listings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Indexed => "indexed",
            Self::Pending => "pending",
            Self::Failed => "failed",
            Self::Locked => "locked",
            Self::NeedsOcr => "needs_ocr",
            Self::Empty => "empty",
            Self::Excluded => "excluded",
        }
    }

    /// The state of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    pub(crate) fn number(self) -> u8 {
        self as u8
    }

    pub(crate) fn from_number(number: i64) -> Self {
        usize::try_from(number).ok().and_then(|n| Self::ALL.get(n)).copied().unwrap_or(Self::Failed)
    }
}

/// Which rankings a search uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Full text and vectors, fused.
    #[default]
    Hybrid,
    /// Full text alone.
    Lexical,
    /// Vectors alone.
    Vector,
}

/// Which documents a search may return. Every part that is set must hold.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// The document is one of these paths or lies below one of them; none means anywhere.
    pub path_prefix: Vec<PathBuf>,
    /// The document lies, at any depth, in a folder of one of these names (or paths without their beginning, such as
    /// `notes/2024`), whatever their case; none means anywhere.
    pub folder: Vec<String>,
    /// Kinds; none means any.
    pub kind: Vec<Kind>,
    /// Modified at or after, in milliseconds since 1970.
    pub after: Option<i64>,
    /// Modified before, in milliseconds since 1970.
    pub before: Option<i64>,
}

impl Filter {
    /// Whether it lets everything through.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.path_prefix.is_empty()
            && self.folder.is_empty()
            && self.kind.is_empty()
            && self.after.is_none()
            && self.before.is_none()
    }
}

/// A search.
#[derive(Debug, Clone)]
pub struct Query {
    /// The words or the question.
    pub text: String,
    /// Hits wanted.
    pub k: usize,
    /// Rankings used.
    pub mode: Mode,
    /// Documents allowed: those that all of these let through.
    pub filters: Vec<Filter>,
}

impl Query {
    /// A hybrid search everywhere.
    #[must_use]
    pub fn new(text: impl Into<String>, k: usize) -> Self {
        Self { text: text.into(), k, mode: Mode::Hybrid, filters: Vec::new() }
    }
}

/// A passage that was found.
#[derive(Debug, Clone)]
pub struct Hit {
    /// The document's path, made printable: bytes that are not UTF-8 stand as `\xNN`.
    pub document_id: String,
    /// The passage, for as long as the document does not change.
    pub passage_id: i64,
    /// The document's path, lossless.
    pub path: PathBuf,
    /// Title, or the file's name where there is none.
    pub title: String,
    /// Kind of the document.
    pub kind: Kind,
    /// Headings above the passage, outermost first, joined by ` > `; empty where there are none.
    pub heading: String,
    /// The page or slide where the passage begins.
    pub page: Option<u32>,
    /// The sheet, message, attachment or the like that it begins in, such as `sheet Costs`; empty where there is none.
    pub part: String,
    /// Who wrote the document, as it says itself.
    pub author: Option<String>,
    /// When it was written or sent, in milliseconds since 1970, as it says itself.
    pub dated: Option<i64>,
    /// First line, from 1.
    pub line_start: u32,
    /// Last line, inclusive.
    pub line_end: u32,
    /// First byte of the passage in the extracted text (the file itself where `in_file`).
    pub byte_start: usize,
    /// One past its last byte.
    pub byte_end: usize,
    /// Whether bytes and lines point into the file itself.
    pub in_file: bool,
    /// What the hits are ordered by: the fused score, or that of the one ranking used.
    pub score: f32,
    /// BM25 score, if the passage has any word of the query.
    pub lexical: Option<f32>,
    /// Cosine of the query and the passage, if both have vectors of the same embedder.
    pub similarity: Option<f32>,
    /// Share of the query's words that the passage has, from 0 to 1, each with its weight in BM25; a word that no passage has
    /// weighs most. `None` where the search did not look at words, or the query has none.
    pub coverage: Option<f32>,
    /// How likely it is, from 0 to 1, that the passage is about the query at all; `None` where that cannot be told.
    pub relevance: Option<f32>,
    /// Other documents that say the same, letter case, punctuation and white space aside; they are not listed as hits.
    pub also: Vec<PathBuf>,
    /// The passage.
    pub text: String,
}

/// What a search found.
#[derive(Debug, Clone)]
pub struct SearchResult {
    /// Best first.
    pub hits: Vec<Hit>,
    /// Generation of the index that was searched.
    pub generation: u64,
    /// Time taken, without the embedding of the query.
    pub took: Duration,
}

/// A page of the list of files.
#[derive(Debug, Clone, Default)]
pub struct FilesQuery {
    /// Only files in this state.
    pub state: Option<State>,
    /// Only this file, or files below this folder.
    pub path: Option<PathBuf>,
    /// Only files whose path sorts after this one.
    pub after: Option<PathBuf>,
    /// At most so many; 0 means as many as one page may have.
    pub limit: usize,
}

/// A known file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileInfo {
    /// Its path, lossless.
    pub path: PathBuf,
    /// Where it stands.
    pub state: State,
    /// Why, where there is something to say.
    pub reason: Option<String>,
    /// Since when, in milliseconds since 1970.
    pub since: i64,
    /// What it is.
    pub kind: Kind,
    /// Size of the file.
    pub bytes: u64,
    /// Passages that are searchable now.
    pub passages: u64,
}

/// A watched folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// Its path, canonical when it was added.
    pub path: PathBuf,
    /// Whether it could be read at the last scan.
    pub state: RootState,
}

/// Whether a root is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootState {
    /// Not scanned yet.
    New,
    /// There at the last scan.
    Present,
    /// Gone or unmounted at the last scan; its documents are kept.
    Missing,
    /// There, but not readable; its documents are kept.
    Unreadable,
}

impl RootState {
    pub(crate) const ALL: [Self; 4] = [Self::New, Self::Present, Self::Missing, Self::Unreadable];

    /// The name used in listings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Present => "present",
            Self::Missing => "missing",
            Self::Unreadable => "unreadable",
        }
    }

    pub(crate) fn number(self) -> u8 {
        self as u8
    }

    pub(crate) fn from_number(number: i64) -> Self {
        usize::try_from(number).ok().and_then(|n| Self::ALL.get(n)).copied().unwrap_or(Self::New)
    }
}

/// How much the index holds. Files are counted by their state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// All known files.
    pub documents: u64,
    /// Passages that are searchable now.
    pub passages: u64,
    /// Passages that still lack a vector.
    pub unembedded: u64,
    /// Files fully indexed.
    pub indexed: u64,
    /// Files whose text or vectors are still to come.
    pub pending: u64,
    /// Files that could not be read.
    pub failed: u64,
    /// Files that need a password.
    pub locked: u64,
    /// Files that hold images of text only.
    pub needs_ocr: u64,
    /// Files without text.
    pub empty: u64,
    /// Files left out on purpose.
    pub excluded: u64,
    /// Generation of the index.
    pub generation: u64,
    /// Bytes on disk, write-ahead log included.
    pub bytes: u64,
}

/// Whether a file still says what a hit says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// The file still has the passage.
    Fresh,
    /// The file is there but has changed.
    Changed,
    /// The file is not there.
    Gone,
}

/// What a `forget` removed. Everything listed was looked for again afterwards and not found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// Documents.
    pub documents: u64,
    /// Passages.
    pub passages: u64,
    /// Vectors.
    pub vectors: u64,
    /// Bytes of text.
    pub text_bytes: u64,
    /// Full-text terms that no other document has and that are gone now.
    pub terms: u64,
    /// Bytes of database and log that were scanned for traces.
    pub scanned_bytes: u64,
}

/// A path made printable: bytes that are not UTF-8 stand as `\xNN`; everything else is left as it is.
#[must_use]
pub fn display_path(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let mut shown = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        shown.push_str(chunk.valid());
        for byte in chunk.invalid() {
            shown.push_str(&format!("\\x{byte:02X}"));
        }
    }
    shown
}
