//! Known files.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{path_bytes, path_of};
use crate::error::{Doing, Error};
use crate::extract::Refusal;
use crate::limits::EXTRACTORS_VERSION;
use crate::types::{Counts, FileInfo, FilesQuery, Kind, State};

/// What tells a changed file from an unchanged one without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stamp {
    pub size: i64,
    /// Nanoseconds since 1970.
    pub mtime: i64,
    /// Nanoseconds since 1970; moves on every change of content, even where mtime is set back.
    pub ctime: i64,
    pub inode: i64,
}

/// A row, without its text.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub id: i64,
    pub path: PathBuf,
    pub state: State,
    pub kind: Kind,
    pub stamp: Stamp,
    pub epoch: i64,
    pub hash: Option<Vec<u8>>,
    pub title: Option<String>,
    pub stale: bool,
    pub language: i64,
    pub in_file: bool,
    pub text_bytes: i64,
    pub unembedded: i64,
    pub author: Option<String>,
    pub dated: Option<i64>,
    /// Why its content gives no text, if these extractors have found that it gives none.
    pub verdict: Option<Refusal>,
}

const COLUMNS: &str = "id, path, state, kind, size, mtime, ctime, inode, epoch, hash, title, stale, language, in_file,
                       text_bytes, unembedded, author, dated, extractors, verdict, verdict_reason";

fn document(row: &Row<'_>) -> rusqlite::Result<Document> {
    Ok(Document {
        id: row.get(0)?,
        path: path_of(row.get(1)?),
        state: State::from_number(row.get(2)?),
        kind: Kind::from_number(row.get(3)?),
        stamp: Stamp { size: row.get(4)?, mtime: row.get(5)?, ctime: row.get(6)?, inode: row.get(7)? },
        epoch: row.get(8)?,
        hash: row.get(9)?,
        title: row.get(10)?,
        stale: row.get(11)?,
        language: row.get(12)?,
        in_file: row.get(13)?,
        text_bytes: row.get(14)?,
        unembedded: row.get(15)?,
        author: row.get(16)?,
        dated: row.get(17)?,
        verdict: verdict(row)?,
    })
}

fn verdict(row: &Row<'_>) -> rusqlite::Result<Option<Refusal>> {
    let (extractors, state, reason): (i64, Option<i64>, Option<String>) = (row.get(18)?, row.get(19)?, row.get(20)?);
    let state = state.filter(|_| extractors == EXTRACTORS_VERSION).map(State::from_number);
    Ok(state.map(|state| Refusal { state, reason: reason.unwrap_or_default() }))
}

pub(crate) fn by_path(connection: &Connection, path: &Path) -> Result<Option<Document>, Error> {
    let sql = format!("SELECT {COLUMNS} FROM documents WHERE path = ?1");
    let mut query = connection.prepare_cached(&sql).doing("look up a document")?;
    query.query_row([path_bytes(path)], document).optional().doing("look up a document")
}

pub(crate) fn by_id(connection: &Connection, id: i64) -> Result<Option<Document>, Error> {
    let sql = format!("SELECT {COLUMNS} FROM documents WHERE id = ?1");
    let mut query = connection.prepare_cached(&sql).doing("look up a document")?;
    query.query_row([id], document).optional().doing("look up a document")
}

/// A document of the same content, other than the one named.
pub(crate) fn by_hash(connection: &Connection, hash: &[u8], but: &Path) -> Result<Option<Document>, Error> {
    let sql = format!(
        "SELECT {COLUMNS} FROM documents WHERE substr(hash, 1, 8) = substr(?1, 1, 8) AND hash = ?1 AND path <> ?2
           AND passages > 0 LIMIT 1"
    );
    let mut query = connection.prepare_cached(&sql).doing("look up a document")?;
    query.query_row(params![hash, path_bytes(but)], document).optional().doing("look up a document")
}

/// Documents at the path or below it, in the order of their paths.
pub(crate) fn below(connection: &Connection, path: &Path) -> Result<Vec<Document>, Error> {
    let (from, to) = range_below(path);
    let sql = format!("SELECT {COLUMNS} FROM documents WHERE path = ?1 OR (path >= ?2 AND path < ?3) ORDER BY path");
    let mut query = connection.prepare_cached(&sql).doing("list documents")?;
    let rows = query.query_map(params![path_bytes(path), from, to], document);
    rows.and_then(Iterator::collect).doing("list documents")
}

/// Bounds of the paths below a folder: its path and `/`, to its path and the byte after `/`.
fn range_below(path: &Path) -> (Vec<u8>, Vec<u8>) {
    let mut from = path_bytes(path).to_vec();
    while from.last() == Some(&b'/') {
        from.pop();
    }
    let mut to = from.clone();
    from.push(b'/');
    to.push(b'/' + 1);
    (from, to)
}

/// What a scan compares with.
pub(crate) struct Known {
    pub stamp: Stamp,
    pub epoch: i64,
    pub state: State,
    pub stale: bool,
    /// Its content was read, whatever came of it.
    pub read: bool,
    /// It gave no text, to extractors older than these.
    pub outdated: bool,
}

/// All known files at the path or below it.
pub(crate) fn known_below(connection: &Connection, path: &Path) -> Result<Vec<(PathBuf, Known)>, Error> {
    let (from, to) = range_below(path);
    let sql = "SELECT path, size, mtime, ctime, inode, epoch, state, stale, hash IS NOT NULL,
                   text_bytes = 0 AND extractors < ?4 FROM documents
               WHERE path = ?1 OR (path >= ?2 AND path < ?3)";
    let mut query = connection.prepare_cached(sql).doing("list documents")?;
    let rows = query.query_map(params![path_bytes(path), from, to, EXTRACTORS_VERSION], |row| {
        let stamp = Stamp { size: row.get(1)?, mtime: row.get(2)?, ctime: row.get(3)?, inode: row.get(4)? };
        let (epoch, state) = (row.get(5)?, State::from_number(row.get(6)?));
        Ok((
            path_of(row.get(0)?),
            Known { stamp, epoch, state, stale: row.get(7)?, read: row.get(8)?, outdated: row.get(9)? },
        ))
    });
    rows.and_then(Iterator::collect).doing("list documents")
}

/// Puts a file on the list as pending; what is searchable of it stays so.
pub(crate) fn set_pending(connection: &Connection, path: &Path, kind: Kind, now: i64) -> Result<(), Error> {
    // `stale` stays until the file is read: a crash before that cannot make it look done.
    let sql = "INSERT INTO documents (path, state, since, kind, size, mtime, ctime, inode, epoch, stale)
               VALUES (?1, ?2, ?3, ?4, 0, 0, 0, 0, -1, 1)
               ON CONFLICT (path) DO UPDATE SET state = ?2, reason = NULL, stale = 1,
                   since = CASE WHEN state = ?2 THEN since ELSE ?3 END";
    connection
        .prepare_cached(sql)
        .and_then(|mut s| s.execute(params![path_bytes(path), State::Pending.number(), now, kind.number()]))
        .doing("list a pending file")?;
    Ok(())
}

/// What became of a file.
pub(crate) struct Outcome<'a> {
    pub path: &'a Path,
    pub state: State,
    pub reason: Option<&'a str>,
    pub kind: Kind,
    pub stamp: Stamp,
    pub epoch: i64,
    pub hash: Option<&'a [u8]>,
    pub title: Option<&'a str>,
    pub keywords: Option<&'a str>,
    pub language: i64,
    pub in_file: bool,
    pub text_bytes: usize,
    pub passages: usize,
    pub unembedded: usize,
    pub author: Option<&'a str>,
    pub dated: Option<i64>,
    /// The language that the document declares.
    pub declared: Option<&'a str>,
    /// State and reason are what comes of the content that `hash` names, whenever it is read.
    pub verdict: bool,
}

impl<'a> Outcome<'a> {
    /// A file without text.
    pub(crate) fn without_text(
        path: &'a Path,
        state: State,
        reason: &'a str,
        kind: Kind,
        stamp: Stamp,
        epoch: i64,
    ) -> Self {
        Self {
            path,
            state,
            reason: Some(reason).filter(|r| !r.is_empty()),
            kind,
            stamp,
            epoch,
            hash: None,
            title: None,
            keywords: None,
            language: 0,
            in_file: false,
            text_bytes: 0,
            passages: 0,
            unembedded: 0,
            author: None,
            dated: None,
            declared: None,
            verdict: false,
        }
    }
}

/// Writes the row and gives its id.
pub(crate) fn put(connection: &Connection, o: &Outcome<'_>, now: i64) -> Result<i64, Error> {
    let sql = "INSERT INTO documents (path, state, reason, since, kind, size, mtime, ctime, inode, epoch, hash, title,
                   keywords, language, in_file, text_bytes, passages, unembedded, author, dated, declared, extractors,
                   verdict, verdict_reason)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22,
                   ?23, ?24)
               ON CONFLICT (path) DO UPDATE SET state = ?2, reason = ?3,
                   since = CASE WHEN state = ?2 AND reason IS ?3 AND hash IS ?11 THEN since ELSE ?4 END, kind = ?5, size = ?6, mtime = ?7,
                   ctime = ?8, inode = ?9, epoch = ?10, stale = 0, hash = ?11, title = ?12, keywords = ?13, language = ?14,
                   in_file = ?15, text_bytes = ?16, passages = ?17, unembedded = ?18, author = ?19, dated = ?20,
                   declared = ?21, extractors = ?22, verdict = ?23, verdict_reason = ?24
               RETURNING id";
    let values = params![
        path_bytes(o.path),
        o.state.number(),
        o.reason,
        now,
        o.kind.number(),
        o.stamp.size,
        o.stamp.mtime,
        o.stamp.ctime,
        o.stamp.inode,
        o.epoch,
        o.hash,
        o.title,
        o.keywords,
        o.language,
        o.in_file,
        count(o.text_bytes),
        count(o.passages),
        count(o.unembedded),
        o.author,
        o.dated,
        o.declared,
        EXTRACTORS_VERSION,
        o.verdict.then(|| o.state.number()),
        o.reason.filter(|_| o.verdict || o.text_bytes > 0),
    ];
    connection.prepare_cached(sql).and_then(|mut s| s.query_row(values, |row| row.get(0))).doing("store a document")
}

fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// The file was touched or moved in place, but its content is the same.
pub(crate) fn set_stamp(connection: &Connection, id: i64, stamp: Stamp, state: State) -> Result<(), Error> {
    let sql = "UPDATE documents SET size = ?2, mtime = ?3, ctime = ?4, inode = ?5, state = ?6, stale = 0,
                   reason = verdict_reason WHERE id = ?1";
    connection
        .prepare_cached(sql)
        .and_then(|mut s| s.execute(params![id, stamp.size, stamp.mtime, stamp.ctime, stamp.inode, state.number()]))
        .doing("store a document")?;
    Ok(())
}

pub(crate) fn delete(connection: &Connection, id: i64) -> Result<(), Error> {
    connection
        .prepare_cached("DELETE FROM documents WHERE id = ?1")
        .and_then(|mut s| s.execute([id]))
        .doing("remove a document")?;
    Ok(())
}

/// Locked files are to be tried again: the passwords are others.
pub(crate) fn retry_locked(connection: &Connection) -> Result<(), Error> {
    let sql = "UPDATE documents SET stale = 1, verdict = NULL WHERE verdict = ?1";
    connection.execute(sql, [State::Locked.number()]).doing("list locked files again")?;
    Ok(())
}

/// Whether a file waits for a password.
pub(crate) fn any_locked(connection: &Connection) -> Result<bool, Error> {
    // The number stands in the text: only then SQLite sees that its partial index answers this.
    let sql = format!("SELECT EXISTS (SELECT 1 FROM documents WHERE state = {})", State::Locked.number());
    let mut query = connection.prepare_cached(&sql).doing("look for locked files")?;
    query.query_row([], |row| row.get(0)).doing("look for locked files")
}

pub(crate) fn list(connection: &Connection, query: &FilesQuery) -> Result<Vec<FileInfo>, Error> {
    let (from, to) = query.path.as_deref().map_or((Vec::new(), None), |p| {
        let (from, to) = range_below(p);
        (from, Some(to))
    });
    let exact = query.path.as_deref().map(path_bytes);
    let after = query.after.as_deref().map(path_bytes);
    let state = query.state.map(State::number);
    let sql = "SELECT path, state, reason, since, kind, size, passages FROM documents
               WHERE (?1 IS NULL OR state = ?1) AND (?2 IS NULL OR path > ?2)
                 AND (?3 IS NULL OR path = ?3 OR (path >= ?4 AND path < ?5))
               ORDER BY path LIMIT ?6";
    let mut statement = connection.prepare_cached(sql).doing("list files")?;
    let rows = statement.query_map(params![state, after, exact, from, to, count(query.limit)], |row| {
        Ok(FileInfo {
            path: path_of(row.get(0)?),
            state: State::from_number(row.get(1)?),
            reason: row.get(2)?,
            since: row.get(3)?,
            kind: Kind::from_number(row.get(4)?),
            bytes: u64::try_from(row.get::<_, i64>(5)?).unwrap_or(0),
            passages: u64::try_from(row.get::<_, i64>(6)?).unwrap_or(0),
        })
    });
    rows.and_then(Iterator::collect).doing("list files")
}

/// Counts by state; generation and bytes are the caller's.
pub(crate) fn counts(connection: &Connection) -> Result<Counts, Error> {
    let sql = "SELECT state, count(*), coalesce(sum(passages), 0), coalesce(sum(unembedded), 0) FROM documents GROUP BY state";
    let mut statement = connection.prepare_cached(sql).doing("count its documents")?;
    let mut rows = statement.query([]).doing("count its documents")?;
    let mut counts = Counts::default();
    while let Some(row) = rows.next().doing("count its documents")? {
        let get = |i| row.get::<_, i64>(i).map(|n| u64::try_from(n).unwrap_or(0)).doing("count its documents");
        let files = get(1)?;
        counts.documents += files;
        counts.passages += get(2)?;
        counts.unembedded += get(3)?;
        *match State::from_number(row.get(0).doing("count its documents")?) {
            State::Indexed => &mut counts.indexed,
            State::Pending => &mut counts.pending,
            State::Failed => &mut counts.failed,
            State::Locked => &mut counts.locked,
            State::NeedsOcr => &mut counts.needs_ocr,
            State::Empty => &mut counts.empty,
            State::Excluded => &mut counts.excluded,
        } += files;
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn below_a_folder_is_not_its_neighbour() {
        let (from, to) = range_below(Path::new("/a/b"));
        let inside = |p: &str| p.as_bytes() >= &from[..] && p.as_bytes() < &to[..];
        assert!(inside("/a/b/c") && inside("/a/b/\u{10FFFF}"));
        assert!(!inside("/a/b") && !inside("/a/b.txt") && !inside("/a/b0") && !inside("/a/bc"));
        let (from, to) = range_below(Path::new("/"));
        assert!(b"/x"[..] >= from[..] && b"/x"[..] < to[..]);
    }
}
