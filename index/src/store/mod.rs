//! SQLite, the truth. One writer connection behind a mutex; readers take a snapshot each.

pub(crate) mod documents;
pub(crate) mod forgotten;
pub(crate) mod fulltext;
mod migrate;
pub(crate) mod parts;
pub(crate) mod passages;
pub(crate) mod queue;
pub(crate) mod roots;
pub(crate) mod state;
pub(crate) mod text;
pub(crate) mod vectors;

use std::fs::File;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::error::{Doing, Error};
use crate::limits::{READERS_IDLE_MAX, VACUUM_PAGES};

/// Older versions can damage a database in WAL mode when a checkpoint meets a reset of the log.
const SQLITE_OLDEST: (i32, &str) = (3_051_003, "3.51.3");

/// Size of the write-ahead log at which it is copied into the database. SQLite's own trigger would do so inside a commit,
/// where searches wait.
const LOG_BYTES_MAX: u64 = 8 << 20;

/// The open database.
pub(crate) struct Store {
    dir: PathBuf,
    readers: Mutex<Vec<Connection>>,
    /// Closed after the readers: the last to go puts the log away, and they may not.
    writer: Mutex<Connection>,
    /// Held for as long as the store is open: no second process writes.
    _lock: File,
}

impl Store {
    pub(crate) fn open(dir: &Path) -> Result<Self, Error> {
        if rusqlite::version_number() < SQLITE_OLDEST.0 {
            return Err(Error::OldSqlite { found: rusqlite::version().to_owned(), needed: SQLITE_OLDEST.1 });
        }
        let io = |doing| move |source| Error::Io { doing, path: dir.to_owned(), source };
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(io("create"))?;
        let dir = &dir.canonicalize().map_err(io("open"))?;
        let lock = lock(dir)?;
        let mut writer = Connection::open(dir.join(FILE)).doing("be opened")?;
        prepare_writer(&writer)?;
        migrate::migrate(&mut writer, dir)?;
        Ok(Self { dir: dir.to_owned(), writer: Mutex::new(writer), readers: Mutex::new(Vec::new()), _lock: lock })
    }

    /// The folder of the index, canonical.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The one connection that writes. A thread that panicked while it held it left a transaction that SQLite rolls back,
    /// so a poisoned lock is still good.
    pub(crate) fn writer(&self) -> MutexGuard<'_, Connection> {
        let guard = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if !guard.is_autocommit() {
            let _ = guard.execute_batch("ROLLBACK");
        }
        guard
    }

    /// Runs `f` on a snapshot.
    pub(crate) fn read<T>(&self, f: impl FnOnce(&Connection) -> Result<T, Error>) -> Result<T, Error> {
        let idle = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut reader = match idle {
            Some(reader) => reader,
            None => open_reader(&self.dir)?,
        };
        let result = {
            let snapshot = reader.transaction().doing("be read")?;
            f(&snapshot)
        };
        let mut idle = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < READERS_IDLE_MAX {
            idle.push(reader);
        }
        result
    }

    /// Copies the log into the database once it is long, and gives free pages back. Call between transactions.
    pub(crate) fn tidy(&self, writer: &Connection) -> Result<(), Error> {
        if file_bytes(&self.dir.join(LOG_FILE)) > LOG_BYTES_MAX {
            checkpoint(writer)?;
        }
        Ok(())
    }

    /// Gives back free pages and empties the log, for a quiet moment. Gives whether none is left: readers may hold the log,
    /// and many pages are given back in several turns.
    pub(crate) fn compact(&self, writer: &Connection) -> Result<bool, Error> {
        let free: u32 =
            writer.pragma_query_value(None, "freelist_count", |row| row.get(0)).doing("count free pages")?;
        if free > 0 {
            give_back_pages(writer).doing("give back free pages")?;
        }
        let emptied = file_bytes(&self.dir.join(LOG_FILE)) == 0 || checkpoint(writer)?;
        Ok(emptied && free <= VACUUM_PAGES)
    }

    /// Bytes on disk.
    pub(crate) fn bytes(&self) -> u64 {
        file_bytes(&self.dir.join(FILE)) + file_bytes(&self.dir.join(LOG_FILE))
    }

    /// The files that hold what the index knows.
    pub(crate) fn files(&self) -> [PathBuf; 2] {
        [self.dir.join(FILE), self.dir.join(LOG_FILE)]
    }
}

/// Every step of this pragma gives back one page.
fn give_back_pages(writer: &Connection) -> rusqlite::Result<()> {
    let mut statement = writer.prepare(&format!("PRAGMA incremental_vacuum({VACUUM_PAGES})"))?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}

const FILE: &str = "index.sqlite";
const LOG_FILE: &str = "index.sqlite-wal";

/// Time to wait for readers that hold the log; what they hold back is copied the next time.
const CHECKPOINT_PATIENCE: Duration = Duration::from_millis(20);
const BUSY_PATIENCE: Duration = Duration::from_secs(10);

/// Copies the log into the database and empties it. Gives whether nothing was held back.
pub(crate) fn checkpoint(writer: &Connection) -> Result<bool, Error> {
    writer.busy_timeout(CHECKPOINT_PATIENCE).doing("copy its log into the database")?;
    let busy: rusqlite::Result<i64> = writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
    writer.busy_timeout(BUSY_PATIENCE).doing("copy its log into the database")?;
    Ok(busy.doing("copy its log into the database")? == 0)
}

fn file_bytes(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |m| m.len())
}

fn lock(dir: &Path) -> Result<File, Error> {
    let path = dir.join("index.lock");
    let io = |source| Error::Io { doing: "lock", path: path.clone(), source };
    let file =
        std::fs::OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path).map_err(io)?;
    match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::Locked { dir: dir.to_owned() }),
        Err(errno) => Err(io(errno.into())),
    }
}

fn prepare_writer(writer: &Connection) -> Result<(), Error> {
    common(writer)?;
    // auto_vacuum must be set before the first table; it is a no-op afterwards.
    writer
        .execute_batch(
            "PRAGMA auto_vacuum = INCREMENTAL;
             PRAGMA journal_mode = WAL;
             PRAGMA synchronous = NORMAL;
             PRAGMA wal_autocheckpoint = 0;
             PRAGMA secure_delete = ON;
             PRAGMA foreign_keys = ON;
             PRAGMA cache_size = -8000;",
        )
        .doing("be opened")?;
    Ok(())
}

fn open_reader(dir: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let reader = Connection::open_with_flags(dir.join(FILE), flags).doing("be opened for reading")?;
    common(&reader)?;
    reader.execute_batch("PRAGMA query_only = ON; PRAGMA cache_size = -4000;").doing("be opened for reading")?;
    Ok(reader)
}

fn common(connection: &Connection) -> Result<(), Error> {
    connection.busy_timeout(BUSY_PATIENCE).doing("be opened")?;
    connection.set_prepared_statement_cache_capacity(64);
    // Plans do not depend on the values bound. Without this, SQLite prepares its statements anew for each value, FTS5's own
    // included: that was half the time of a search.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).doing("be opened")?;
    // The schema is ours, but the file is data: nothing in it may call functions with side effects.
    connection.execute_batch("PRAGMA trusted_schema = OFF;").doing("be opened")
}

/// The bytes of a path, as they are stored.
pub(crate) fn path_bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

/// The path of stored bytes.
pub(crate) fn path_of(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}
