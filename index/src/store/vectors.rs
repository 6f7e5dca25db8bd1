//! Vectors of passages, quantized to one byte a dimension. Rows lie in the order in which they were made, so that pages are
//! full; an index finds the one of a passage.
//!
//! Layout of a blob: scale as little-endian f32, then `dim` signed bytes. Component i is `scale * byte[i]`. The largest
//! component maps to 127, so the error of a component is at most half of `largest / 127`; for unit vectors of a few hundred
//! dimensions that moves a cosine by a few thousandths.

use rusqlite::{Connection, OptionalExtension, params};

use crate::error::{Doing, Error};

/// A quantized vector.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Quantized {
    pub scale: f32,
    pub bytes: Vec<i8>,
}

impl Quantized {
    /// Rounds to the nearest step. The vector must be finite.
    pub(crate) fn of(vector: &[f32]) -> Self {
        let largest = vector.iter().fold(0.0_f32, |m, x| m.max(x.abs()));
        if largest == 0.0 {
            return Self { scale: 0.0, bytes: vec![0; vector.len()] };
        }
        let scale = largest / 127.0;
        // The quotient lies within ±127, so the cast cuts nothing.
        Self { scale, bytes: vector.iter().map(|x| (x / scale).round() as i8).collect() }
    }

    pub(crate) fn to_blob(&self) -> Vec<u8> {
        let mut blob = self.scale.to_le_bytes().to_vec();
        blob.extend(self.bytes.iter().map(|b| b.cast_unsigned()));
        blob
    }

    /// `None` where the blob is not one of that dimension, or its scale is no positive number.
    pub(crate) fn from_blob(blob: &[u8], dim: usize) -> Option<Self> {
        let (scale, bytes) = blob.split_first_chunk::<4>()?;
        let scale = f32::from_le_bytes(*scale);
        (bytes.len() == dim && scale.is_finite() && scale >= 0.0)
            .then(|| Self { scale, bytes: bytes.iter().map(|b| b.cast_signed()).collect() })
    }
}

/// Whose vectors: each kind has a table of its own, of the same form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    /// The embedder that searches use.
    Serving,
    /// The one that takes over once every passage has a vector of it.
    Coming,
}

impl Of {
    pub(crate) const ALL: [Self; 2] = [Self::Serving, Self::Coming];

    pub(crate) fn table(self) -> &'static str {
        match self {
            Self::Serving => "vectors",
            Self::Coming => "coming_vectors",
        }
    }
}

pub(crate) fn put(connection: &Connection, of: Of, passage_id: i64, vector: &Quantized) -> Result<(), Error> {
    let sql = format!(
        "INSERT INTO {} (passage_id, data) VALUES (?1, ?2) ON CONFLICT (passage_id) DO UPDATE SET data = ?2",
        of.table()
    );
    connection
        .prepare_cached(&sql)
        .and_then(|mut s| s.execute(params![passage_id, vector.to_blob()]))
        .doing("store a vector")?;
    Ok(())
}

/// Calls `f` with every vector of that dimension that serves, in the order of the file.
pub(crate) fn each(connection: &Connection, dim: usize, mut f: impl FnMut(i64, Quantized)) -> Result<(), Error> {
    let mut query = connection.prepare("SELECT passage_id, data FROM vectors ORDER BY id").doing("load its vectors")?;
    let mut rows = query.query([]).doing("load its vectors")?;
    while let Some(row) = rows.next().doing("load its vectors")? {
        let blob = row.get_ref(1).doing("load its vectors")?.as_blob().unwrap_or_default();
        if let Some(vector) = Quantized::from_blob(blob, dim) {
            f(row.get(0).doing("load its vectors")?, vector);
        }
    }
    Ok(())
}

/// The stored blob.
pub(crate) fn raw(connection: &Connection, of: Of, passage_id: i64) -> Result<Option<Vec<u8>>, Error> {
    let sql = format!("SELECT data FROM {} WHERE passage_id = ?1", of.table());
    let mut query = connection.prepare_cached(&sql).doing("read a vector")?;
    query.query_row([passage_id], |row| row.get(0)).optional().doing("read a vector")
}

pub(crate) fn get(connection: &Connection, of: Of, passage_id: i64, dim: usize) -> Result<Option<Quantized>, Error> {
    Ok(raw(connection, of, passage_id)?.and_then(|blob| Quantized::from_blob(&blob, dim)))
}

/// Removes a document's vectors of both kinds.
pub(crate) fn delete_of(connection: &Connection, document_id: i64) -> Result<(), Error> {
    for of in Of::ALL {
        let sql =
            format!("DELETE FROM {} WHERE passage_id IN (SELECT id FROM passages WHERE document_id = ?1)", of.table());
        connection.prepare_cached(&sql).and_then(|mut s| s.execute([document_id])).doing("remove vectors")?;
    }
    Ok(())
}

pub(crate) fn delete_all(connection: &Connection, of: Of) -> Result<(), Error> {
    connection.execute(&format!("DELETE FROM {}", of.table()), []).doing("remove vectors")?;
    Ok(())
}

/// The coming vectors become those that serve, and there are none to come.
pub(crate) fn take_over(connection: &Connection) -> Result<(), Error> {
    connection
        .execute_batch(
            "DELETE FROM vectors;
             INSERT INTO vectors (passage_id, data) SELECT passage_id, data FROM coming_vectors ORDER BY id;
             DELETE FROM coming_vectors;",
        )
        .doing("change the embedder")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_gives_back_the_vector() {
        let vector: Vec<f32> = (0..384_u16).map(|i| (f32::from(i) * 0.37).sin() / 14.0).collect();
        let quantized = Quantized::of(&vector);
        let back = Quantized::from_blob(&quantized.to_blob(), 384).unwrap();
        assert_eq!(back, quantized);
        for (x, b) in vector.iter().zip(&back.bytes) {
            assert!((x - back.scale * f32::from(*b)).abs() <= back.scale * 0.5001);
        }
    }

    #[test]
    fn a_wrong_blob_is_no_vector() {
        let blob = Quantized::of(&[0.6, 0.8]).to_blob();
        assert!(Quantized::from_blob(&blob, 3).is_none());
        assert!(Quantized::from_blob(&blob[..3], 2).is_none());
        let mut nan = blob;
        nan[..4].copy_from_slice(&f32::NAN.to_le_bytes());
        assert!(Quantized::from_blob(&nan, 2).is_none());
    }
}
