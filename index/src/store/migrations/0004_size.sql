-- Less room for the same. A B-tree's pages are full where rows only come at its end; elsewhere a fifth to a third lies empty.

-- Texts: a block's row id is its document's id and its first byte in one number (document << 28 | byte), which needs no
-- index. Blocks are written as raw deflate, and packed tightly (brotli) once nobody waits for it. They move then, in order,
-- for a row that shrinks in place leaves a hole.
CREATE TABLE loose_texts (
    id   INTEGER PRIMARY KEY,
    data BLOB NOT NULL
);
CREATE TABLE texts (
    id   INTEGER PRIMARY KEY,
    data BLOB NOT NULL
);
INSERT INTO loose_texts (id, data) SELECT (document_id << 28) | start, data FROM blocks ORDER BY document_id, start;
DROP TABLE blocks;

-- Vectors in the order in which they were made: passages are embedded out of order.
CREATE TABLE vectors_by_time (
    id         INTEGER PRIMARY KEY,
    passage_id INTEGER NOT NULL REFERENCES passages (id),
    data       BLOB NOT NULL
);
INSERT INTO vectors_by_time (passage_id, data) SELECT passage_id, data FROM vectors ORDER BY passage_id;
DROP TABLE vectors;
ALTER TABLE vectors_by_time RENAME TO vectors;
CREATE UNIQUE INDEX vectors_passage ON vectors (passage_id);

-- Eight bytes of a hash find its row as well as all of them.
DROP INDEX documents_hash;
CREATE INDEX documents_hash ON documents (substr(hash, 1, 8)) WHERE hash IS NOT NULL;
-- Only locked files are ever looked for by their state alone.
DROP INDEX documents_state;
CREATE INDEX documents_locked ON documents (id) WHERE state = 3;

-- Passages written or deleted since the full text was last merged into one.
DELETE FROM state WHERE key = 'dead';
INSERT INTO state (key, value) SELECT 'unmerged', count(*) FROM passages;
