-- While the embedder changes, `vectors` are those of the old one, which still serves, and these are those of the new one.
CREATE TABLE coming_vectors (
    id         INTEGER PRIMARY KEY,
    passage_id INTEGER NOT NULL REFERENCES passages (id),
    data       BLOB NOT NULL
);
CREATE UNIQUE INDEX coming_vectors_passage ON coming_vectors (passage_id);

-- Documents with a passage too long for the new embedder: cut anew once it serves.
CREATE TABLE too_long (
    document_id INTEGER PRIMARY KEY
);
