-- Pages, sheets, slides, messages and the like of a document, in the order of its text. One runs to the next.
CREATE TABLE parts (
    document_id INTEGER NOT NULL REFERENCES documents (id),
    number      INTEGER NOT NULL,            -- of the row within its document, from 0
    start       INTEGER NOT NULL,            -- first byte in the text
    kind        INTEGER NOT NULL,
    label       INTEGER NOT NULL,            -- as a person counts, from 1
    name        TEXT,
    PRIMARY KEY (document_id, number)
) WITHOUT ROWID;
CREATE INDEX parts_start ON parts (document_id, start);

-- What a document says of itself. `dated` is in milliseconds since 1970, `declared` a language tag.
ALTER TABLE documents ADD COLUMN author TEXT;
ALTER TABLE documents ADD COLUMN dated INTEGER;
ALTER TABLE documents ADD COLUMN declared TEXT;

-- Which extractors a file was read by. Files that gave no text are read again when there are newer ones.
ALTER TABLE documents ADD COLUMN extractors INTEGER NOT NULL DEFAULT 1;
