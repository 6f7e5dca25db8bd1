//! The GGUF container, versions 2 and 3, little-endian.
//!
//! ```text
//! magic "GGUF" | u32 version | u64 tensor count | u64 pair count
//! pairs:   string key | u32 type | value
//! tensors: string name | u32 dims | u64 dim[..] (fastest first) | u32 type | u64 offset into data
//! padding to general.alignment (32 unless given)
//! data:    the tensors in order, each padded to the alignment
//! ```
//! A string is a u64 length and that many UTF-8 bytes. Everything is checked here, once: a [`TensorInfo`] that
//! [`Gguf::open`] hands out lies wholly inside the file and overlaps no other.

mod metadata;
pub(crate) mod reader;
mod write;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

pub use metadata::{Metadata, Value};
use reader::Reader;
pub use write::{GgufWriter, WriteError};

use crate::error::LoadError;
use crate::limits::{MAX_ALIGNMENT, MAX_DIMS, MAX_KV, MAX_NAME_BYTES, MAX_TENSORS};
use crate::mapping::Mapping;
use crate::quant::TensorType;

/// Where a tensor lies and what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo {
    /// Its name, e.g. `blk.0.attn_q.weight`.
    pub name: String,
    /// Dimensions, fastest first: `[columns (input features), rows, ..]`.
    pub dims: Vec<u64>,
    /// Storage type.
    pub ty: TensorType,
    /// First byte, from the start of the file.
    pub start: u64,
    /// Size in bytes, without padding.
    pub bytes: u64,
}

/// An open, validated GGUF file.
#[derive(Debug, Clone)]
pub struct Gguf {
    mapping: Arc<Mapping>,
    metadata: Arc<Metadata>,
    tensors: Arc<HashMap<String, TensorInfo>>,
}

impl Gguf {
    /// Maps and checks a file.
    ///
    /// # Errors
    /// A [`LoadError`] that says what is wrong and where.
    pub fn open(path: &Path) -> Result<Self, LoadError> {
        let mapping = Mapping::open(path)?;
        let (metadata, tensors) = parse(mapping.bytes())?;
        Ok(Self { mapping: Arc::new(mapping), metadata: Arc::new(metadata), tensors: Arc::new(tensors) })
    }

    /// The header's key-value pairs.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// `general.architecture`.
    ///
    /// # Errors
    /// [`LoadError::MissingKey`] or [`LoadError::BadKey`].
    pub fn architecture(&self) -> Result<&str, LoadError> {
        self.metadata.need_str("general.architecture")
    }

    /// A tensor by name.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.tensors.get(name)
    }

    /// All tensors, in the order of their data.
    #[must_use]
    pub fn tensors(&self) -> Vec<&TensorInfo> {
        let mut all: Vec<&TensorInfo> = self.tensors.values().collect();
        all.sort_unstable_by_key(|t| t.start);
        all
    }

    /// The bytes of a tensor of this file.
    #[must_use]
    pub fn data(&self, info: &TensorInfo) -> &[u8] {
        &self.mapping.bytes()[info.start as usize..(info.start + info.bytes) as usize]
    }

    /// The mapping, shared with the weights that borrow from it.
    #[must_use]
    pub fn mapping(&self) -> &Arc<Mapping> {
        &self.mapping
    }
}

/// Parses and validates a whole file.
pub(crate) fn parse(bytes: &[u8]) -> Result<(Metadata, HashMap<String, TensorInfo>), LoadError> {
    let mut r = Reader::new(bytes);
    let magic = r.take(4.min(bytes.len() as u64), "magic")?;
    if magic != b"GGUF" {
        return Err(LoadError::NotGguf { found: magic.to_vec() });
    }
    let version = r.u32("version")?;
    // A byte-swapped small number has zeros in its low half.
    if version != 0 && version & 0xffff == 0 {
        return Err(LoadError::BigEndian);
    }
    if !(2..=3).contains(&version) {
        return Err(LoadError::Version(version));
    }
    let n_tensors = r.count(MAX_TENSORS, "tensor count")?;
    let n_kv = r.count(MAX_KV, "metadata count")?;
    let metadata = Metadata::read(&mut r, n_kv)?;
    let alignment = alignment(&metadata)?;
    let mut infos = Vec::new();
    for _ in 0..n_tensors {
        infos.push(tensor_info(&mut r)?);
    }
    let data = r.position().next_multiple_of(alignment);
    let tensors = place(infos, data, alignment, bytes.len() as u64)?;
    Ok((metadata, tensors))
}

fn alignment(metadata: &Metadata) -> Result<u64, LoadError> {
    let key = "general.alignment";
    let a = u64::from(metadata.u32(key)?.unwrap_or(32));
    if !a.is_power_of_two() || !(8..=MAX_ALIGNMENT).contains(&a) {
        let what = format!("{a} is not a power of two between 8 and {MAX_ALIGNMENT}");
        return Err(LoadError::BadKey { key: key.into(), what });
    }
    Ok(a)
}

/// One directory entry; `start` is still relative to the data section.
fn tensor_info(r: &mut Reader<'_>) -> Result<TensorInfo, LoadError> {
    let at = r.position();
    let name = r.string("tensor name")?.to_owned();
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        return Err(LoadError::Malformed { what: format!("a tensor name of {} bytes", name.len()), at });
    }
    let n_dims = r.u32(&name)?;
    if n_dims == 0 || n_dims > MAX_DIMS {
        return Err(LoadError::Malformed { what: format!("tensor {name} has {n_dims} dimensions"), at });
    }
    let dims = (0..n_dims).map(|_| r.u64(&name)).collect::<Result<Vec<u64>, _>>()?;
    let elements = dims.iter().try_fold(1u64, |n, &d| n.checked_mul(d)).filter(|&n| n > 0 && n < 1 << 62);
    let Some(elements) = elements else {
        return Err(LoadError::TensorLayout { tensor: name, what: format!("impossible shape {dims:?}") });
    };
    let id = r.u32(&name)?;
    let Some(ty) = TensorType::from_id(id) else {
        return Err(LoadError::TensorType { tensor: name, id, name: TensorType::foreign_name(id) });
    };
    let block = ty.block_len() as u64;
    if !dims[0].is_multiple_of(block) {
        let what = format!("row length {} is not a multiple of the block length {block} of {ty}", dims[0]);
        return Err(LoadError::TensorLayout { tensor: name, what });
    }
    let start = r.u64(&name)?;
    let bytes = elements / block * ty.block_bytes() as u64;
    Ok(TensorInfo { name, dims, ty, start, bytes })
}

/// Checks offsets against the padded running sum (no gap, no overlap) and the end of the file.
fn place(
    mut infos: Vec<TensorInfo>,
    data: u64,
    alignment: u64,
    file_bytes: u64,
) -> Result<HashMap<String, TensorInfo>, LoadError> {
    let mut expected = 0u64;
    for t in &mut infos {
        if t.start != expected {
            let what = format!("data offset {} instead of {expected} (a gap or an overlap)", t.start);
            return Err(LoadError::TensorLayout { tensor: t.name.clone(), what });
        }
        let end = data.checked_add(expected).and_then(|s| s.checked_add(t.bytes));
        let Some(end) = end.filter(|&e| e <= file_bytes) else {
            return Err(LoadError::Truncated {
                what: format!("tensor {}", t.name),
                from: data.saturating_add(expected),
                to: data.saturating_add(expected).saturating_add(t.bytes),
                have: file_bytes,
            });
        };
        t.start = end - t.bytes;
        expected = expected
            .checked_add(t.bytes)
            .and_then(|e| e.checked_next_multiple_of(alignment))
            .ok_or_else(|| LoadError::TensorLayout { tensor: t.name.clone(), what: "size overflows".into() })?;
    }
    let mut map = HashMap::with_capacity(infos.len());
    for t in infos {
        let name = t.name.clone();
        if map.insert(name.clone(), t).is_some() {
            return Err(LoadError::TensorLayout { tensor: name, what: "the name occurs twice".into() });
        }
    }
    Ok(map)
}
