-- The truth of the index. Everything in memory is built from these tables.

-- Single values: generation, embedder, epoch, version of the full-text terms.
CREATE TABLE state (
    key   TEXT PRIMARY KEY,
    value
) WITHOUT ROWID;

-- Watched folders. `inode` is that of the folder at the last good scan: an empty folder with another inode is a mount
-- point without its file system.
CREATE TABLE roots (
    id    INTEGER PRIMARY KEY,
    path  BLOB NOT NULL UNIQUE,
    state INTEGER NOT NULL,
    inode INTEGER
);

-- Known files, whatever became of them. A path is raw bytes: names need not be UTF-8.
CREATE TABLE documents (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    path       BLOB NOT NULL UNIQUE,
    state      INTEGER NOT NULL,
    reason     TEXT,
    since      INTEGER NOT NULL,             -- milliseconds since 1970
    kind       INTEGER NOT NULL,
    size       INTEGER NOT NULL,
    mtime      INTEGER NOT NULL,             -- nanoseconds since 1970
    ctime      INTEGER NOT NULL,             -- nanoseconds since 1970
    inode      INTEGER NOT NULL,
    epoch      INTEGER NOT NULL,             -- of the embedder it was cut for; another one means: do it again
    stale      INTEGER NOT NULL DEFAULT 0,   -- seen to have changed; what is searchable is the old version
    hash       BLOB,                         -- SHA-256 of the file; NULL until its text was read
    title      TEXT,
    keywords   TEXT,
    language   INTEGER NOT NULL DEFAULT 0,
    in_file    INTEGER NOT NULL DEFAULT 0,   -- spans point into the file itself
    text_bytes INTEGER NOT NULL DEFAULT 0,
    passages   INTEGER NOT NULL DEFAULT 0,
    unembedded INTEGER NOT NULL DEFAULT 0    -- passages without a vector
);
CREATE INDEX documents_state ON documents (state);
CREATE INDEX documents_hash ON documents (hash) WHERE hash IS NOT NULL;
CREATE INDEX documents_unembedded ON documents (since) WHERE unembedded > 0;

-- The text of a document in compressed blocks. A table with row ids wastes less of its pages on rows of this size.
CREATE TABLE blocks (
    id          INTEGER PRIMARY KEY,
    document_id INTEGER NOT NULL REFERENCES documents (id),
    start       INTEGER NOT NULL,            -- first byte of the block in the text
    data        BLOB NOT NULL                -- raw deflate
);
CREATE INDEX blocks_document ON blocks (document_id, start);

-- Ids are never used twice: the full-text table and the resident table refer to them.
CREATE TABLE passages (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    document_id INTEGER NOT NULL REFERENCES documents (id),
    byte_start  INTEGER NOT NULL,
    byte_end    INTEGER NOT NULL,
    line_start  INTEGER NOT NULL,
    line_end    INTEGER NOT NULL,
    heading     TEXT,
    length      INTEGER NOT NULL,            -- in full-text terms
    fingerprint INTEGER NOT NULL             -- of what is embedded: equal text keeps its vector
);
CREATE INDEX passages_document ON passages (document_id);

-- Vectors of the one embedder named in `state`: f32 scale, then one i8 for each dimension.
CREATE TABLE vectors (
    passage_id INTEGER PRIMARY KEY REFERENCES passages (id),
    data       BLOB NOT NULL
);

-- Terms made by `terms.rs`, separated by spaces; rowid is the passage. `detail=none` keeps no positions and no counts: a
-- term that occurs often is entered again under the names of its higher tiers (see `fulltext.rs`).
CREATE VIRTUAL TABLE fulltext USING fts5 (
    terms, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii'
);
CREATE VIRTUAL TABLE fulltext_terms USING fts5vocab (fulltext, row);

-- Files that must not come back until they change.
CREATE TABLE forgotten (
    path  BLOB PRIMARY KEY,
    hash  BLOB,
    size  INTEGER NOT NULL,
    mtime INTEGER NOT NULL
) WITHOUT ROWID;
