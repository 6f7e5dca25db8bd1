//! Between the wire's types and the index's: the only place that knows both.

use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use satchel_index as index;
use satchel_ipc::wire;
use satchel_ipc::{Code, ErrorBody};

/// A hit on the wire.
pub fn hit(h: &index::Hit) -> wire::Hit {
    wire::Hit {
        document_id: h.document_id.clone(),
        passage_id: h.passage_id,
        path: h.document_id.clone(),
        title: title(h),
        page: h.page,
        part: Some(h.part.clone()).filter(|p| !p.is_empty()),
        author: h.author.clone(),
        dated: h.dated.map(|ms| ms.div_euclid(1000)),
        line_start: h.line_start,
        line_end: h.line_end,
        byte_start: h.byte_start as u64,
        byte_end: h.byte_end as u64,
        score: f64::from(h.score),
        similarity: h.similarity.map(f64::from),
        coverage: h.coverage.map(f64::from),
        relevance: h.relevance.map(f64::from),
        also: h.also.iter().map(|path| index::display_path(path)).collect(),
        text: h.text.clone(),
    }
}

/// The document's title, the part of it and the headings that a passage stands under.
pub fn title(h: &index::Hit) -> String {
    [&h.title, &h.part, &h.heading].into_iter().filter(|s| !s.is_empty()).cloned().collect::<Vec<_>>().join(" > ")
}

/// A search's mode.
pub fn mode(m: wire::SearchMode) -> index::Mode {
    match m {
        wire::SearchMode::Hybrid => index::Mode::Hybrid,
        wire::SearchMode::Lexical => index::Mode::Lexical,
        wire::SearchMode::Vector => index::Mode::Vector,
    }
}

/// The kind of that name.
///
/// # Errors
/// `bad_request`, with the known ones.
pub fn kind(name: &str) -> Result<index::Kind, ErrorBody> {
    index::Kind::from_name(&name.to_lowercase()).ok_or_else(|| {
        let known: Vec<&str> = index::Kind::ALL.iter().map(|k| k.name()).collect();
        ErrorBody::bad_request(format!("kind {name:?} is not known")).with_hint(format!("kinds: {}", known.join(", ")))
    })
}

/// A filter; paths must be absolute, so that a client's folder never decides what is searched.
pub fn filter(f: Option<&wire::Filter>) -> Result<index::Filter, ErrorBody> {
    let Some(f) = f else { return Ok(index::Filter::default()) };
    Ok(index::Filter {
        path_prefix: f.path_prefix.iter().map(|p| absolute(p)).collect::<Result<_, _>>()?,
        folder: Vec::new(),
        kind: f.kind.iter().map(|name| kind(name)).collect::<Result<_, _>>()?,
        after: f.after.map(|s| s.saturating_mul(1000)),
        before: f.before.map(|s| s.saturating_mul(1000)),
    })
}

/// A path of a request. Names that are not UTF-8 come as the index shows them, with `\xNN`.
pub fn absolute(path: &str) -> Result<PathBuf, ErrorBody> {
    let path = unescape(path);
    if path.is_absolute() {
        return Ok(path);
    }
    Err(ErrorBody::bad_request(format!("the path {} is not absolute", path.display())).with_hint("begin it with /"))
}

/// The path that was shown as `shown`: `\xNN` stands for a byte that is not UTF-8. A name that holds these four
/// characters themselves wins, as long as there is such a file.
fn unescape(shown: &str) -> PathBuf {
    let literal = PathBuf::from(shown);
    if !shown.contains("\\x") || literal.symlink_metadata().is_ok() {
        return literal;
    }
    let mut bytes = Vec::with_capacity(shown.len());
    let mut rest = shown;
    while let Some((before, after)) = rest.split_once("\\x") {
        bytes.extend_from_slice(before.as_bytes());
        match after.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|b| !b.is_ascii()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.extend_from_slice(b"\\x");
                rest = after;
            }
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

/// A known file.
pub fn file(f: &index::FileInfo) -> wire::FileEntry {
    wire::FileEntry {
        path: index::display_path(&f.path),
        state: state(f.state),
        reason: f.reason.clone(),
        since: f.since / 1000,
        kind: f.kind.name().to_owned(),
        bytes: f.bytes,
        passages: f.passages,
    }
}

/// A file's state.
pub fn state(s: index::State) -> wire::FileState {
    match s {
        index::State::Indexed => wire::FileState::Indexed,
        index::State::Pending => wire::FileState::Pending,
        index::State::Failed => wire::FileState::Failed,
        index::State::Locked => wire::FileState::Locked,
        index::State::NeedsOcr => wire::FileState::NeedsOcr,
        index::State::Empty => wire::FileState::Empty,
        index::State::Excluded => wire::FileState::Excluded,
    }
}

/// The other way, for filters of listings.
pub fn state_from(s: wire::FileState) -> index::State {
    match s {
        wire::FileState::Indexed => index::State::Indexed,
        wire::FileState::Pending => index::State::Pending,
        wire::FileState::Failed => index::State::Failed,
        wire::FileState::Locked => index::State::Locked,
        wire::FileState::NeedsOcr => index::State::NeedsOcr,
        wire::FileState::Empty => index::State::Empty,
        wire::FileState::Excluded => index::State::Excluded,
    }
}

/// An error of the index, with its causes in one sentence.
pub fn index_error(e: &index::Error) -> ErrorBody {
    let mut message = e.to_string();
    let mut source = std::error::Error::source(e);
    while let Some(cause) = source {
        message = format!("{message}: {cause}");
        source = cause.source();
    }
    let (code, hint) = match e {
        index::Error::RootMissing { .. } | index::Error::RootNotAFolder { .. } => {
            (Code::BadRequest, Some("name a folder that exists"))
        }
        index::Error::NotARoot { .. } => (Code::BadRequest, Some("`satchel roots` lists the watched folders")),
        index::Error::SystemFolder { .. } => (Code::BadRequest, Some("watch a folder with files of your own")),
        index::Error::RootHoldsIndex { .. } => (Code::BadRequest, Some("watch a folder beside satchel's own home")),
        index::Error::UnknownDocument { .. } => (Code::BadRequest, Some("`satchel files` lists the known documents")),
        index::Error::NoEmbedder => (Code::ModelMissing, Some("wait for the embedder, or search with --mode lexical")),
        index::Error::Locked { .. } => (Code::Busy, Some("stop the other daemon, or give this one its own --home")),
        index::Error::NewerSchema { .. } => (Code::Error, Some("use the newer version of satchel that wrote it")),
        index::Error::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
            (Code::Error, Some("free some disk space; nothing that was indexed is lost"))
        }
        _ => (Code::Error, None),
    };
    let body = ErrorBody::new(code, message);
    match hint {
        Some(hint) => body.with_hint(hint),
        None => body,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn shown_paths_come_back_as_they_were() {
        let raw = std::path::Path::new(std::ffi::OsStr::from_bytes(b"/a/bad\xff\xfe.txt"));
        assert_eq!(absolute(&index::display_path(raw)).unwrap(), raw);
        assert_eq!(absolute("/a/\\x41\\xzz").unwrap(), std::path::Path::new("/a/\\x41\\xzz"));
        assert_eq!(absolute("notes").unwrap_err().code, Code::BadRequest);
    }
}
