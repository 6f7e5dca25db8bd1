//! The safetensors container: a u64 length, that many bytes of JSON, then the data.
//!
//! The JSON maps a name to `{"dtype", "shape", "data_offsets": [from, to]}`, offsets counted from the end of the JSON.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::{ImportError, unsupported};
use crate::gguf::reader::Reader;
use crate::limits::{MAX_SAFETENSORS_HEADER, MAX_TENSORS};
use crate::mapping::Mapping;
use crate::quant::{bf16_to_f32, f16_to_f32};

/// How a tensor's numbers are stored; others (integers, mostly) are skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dtype {
    F32,
    F16,
    BF16,
}

/// A float tensor of the file, its bytes within the mapping.
#[derive(Debug, Clone)]
pub(super) struct View {
    dtype: Dtype,
    /// Slowest first, as the container has it.
    pub(super) shape: Vec<u64>,
    start: usize,
    end: usize,
}

/// An open file, every tensor checked to lie inside it.
#[derive(Debug)]
pub(super) struct Safetensors {
    path: PathBuf,
    mapping: Mapping,
    views: HashMap<String, View>,
}

impl Safetensors {
    pub(super) fn open(path: &Path) -> Result<Self, ImportError> {
        let damaged = |source| ImportError::Damaged { path: path.to_owned(), source };
        let mapping = Mapping::open(path).map_err(damaged)?;
        let mut r = Reader::new(mapping.bytes());
        let length = r.count(MAX_SAFETENSORS_HEADER, "header length").map_err(damaged)?;
        let json = r.take(length, "header").map_err(damaged)?;
        let header: serde_json::Map<String, serde_json::Value> =
            serde_json::from_slice(json).map_err(|source| ImportError::Json { path: path.to_owned(), source })?;
        if header.len() as u64 > MAX_TENSORS {
            return Err(unsupported(path, format!("{} tensors, more than the {MAX_TENSORS} allowed", header.len())));
        }
        let (data, size) = (r.position(), mapping.bytes().len() as u64);
        let mut views = HashMap::new();
        for (name, entry) in header {
            if name != "__metadata__" {
                let view =
                    view(&entry, data, size).map_err(|what| unsupported(path, format!("tensor {name:?}: {what}")))?;
                views.extend(view.map(|view| (name, view)));
            }
        }
        Ok(Self { path: path.to_owned(), mapping, views })
    }

    /// The first of `names` that is there.
    pub(super) fn find(&self, names: &[String]) -> Result<&View, ImportError> {
        names.iter().find_map(|name| self.views.get(name)).ok_or_else(|| {
            let name = names.first().map_or("", String::as_str);
            unsupported(&self.path, format!("the tensor {name} is missing or not of floats"))
        })
    }

    /// Elements `from..` of a tensor as floats.
    pub(super) fn floats(&self, view: &View, from: usize) -> Vec<f32> {
        let bytes = &self.mapping.bytes()[view.start..view.end];
        let halves = |convert: fn([u8; 2]) -> f32| {
            bytes[from * 2..].chunks_exact(2).map(|b| convert([b[0], b[1]])).collect::<Vec<f32>>()
        };
        match view.dtype {
            Dtype::F32 => {
                bytes[from * 4..].chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
            }
            Dtype::F16 => halves(f16_to_f32),
            Dtype::BF16 => halves(bf16_to_f32),
        }
    }
}

/// Checks one entry of the header; none for a tensor that is not of floats.
fn view(entry: &serde_json::Value, data: u64, file_bytes: u64) -> Result<Option<View>, String> {
    let (dtype, bytes) = match entry["dtype"].as_str().ok_or("no dtype")? {
        "F32" => (Dtype::F32, 4),
        "F16" => (Dtype::F16, 2),
        "BF16" => (Dtype::BF16, 2),
        _ => return Ok(None),
    };
    let numbers = |key: &str| -> Result<Vec<u64>, String> {
        let list = entry[key].as_array().ok_or_else(|| format!("no {key}"))?;
        list.iter().map(|v| v.as_u64().ok_or_else(|| format!("{key} holds {v}"))).collect()
    };
    let shape = numbers("shape")?;
    let offsets = numbers("data_offsets")?;
    let &[from, to] = offsets.as_slice() else { return Err(format!("{} data offsets", offsets.len())) };
    let planned = shape.iter().try_fold(bytes, |n: u64, d| n.checked_mul(*d));
    let start = data.checked_add(from);
    let end = data.checked_add(to).filter(|end| *end <= file_bytes);
    let (Some(planned), Some(start), Some(end)) = (planned, start, end) else {
        return Err(format!("bytes {from}..{to} of shape {shape:?} reach beyond the file"));
    };
    if from > to || to - from != planned {
        return Err(format!("shape {shape:?} needs {planned} bytes, not {from}..{to}"));
    }
    Ok(Some(View { dtype, shape, start: start as usize, end: end as usize }))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A container from its header's JSON and its data.
    pub(crate) fn container(json: &str, data: &[u8]) -> Vec<u8> {
        let mut file = (json.len() as u64).to_le_bytes().to_vec();
        file.extend_from_slice(json.as_bytes());
        file.extend_from_slice(data);
        file
    }

    fn open(bytes: &[u8]) -> Result<Safetensors, ImportError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        std::fs::write(&path, bytes).unwrap();
        Safetensors::open(&path)
    }

    #[test]
    fn floats_of_every_kind_are_read_and_others_skipped() {
        let json = r#"{"__metadata__":{"format":"pt"},
            "a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
            "b":{"dtype":"F16","shape":[1,2],"data_offsets":[8,12]},
            "c":{"dtype":"BF16","shape":[2],"data_offsets":[12,16]},
            "ids":{"dtype":"I64","shape":[1],"data_offsets":[16,24]}}"#;
        let mut data = Vec::new();
        data.extend([1.5f32, -2.0].iter().flat_map(|v| v.to_le_bytes()));
        data.extend([0x3e00u16, 0xc000].iter().flat_map(|v| v.to_le_bytes()));
        data.extend([0x3fc0u16, 0xc000].iter().flat_map(|v| v.to_le_bytes()));
        data.extend([0; 8]);
        let file = open(&container(json, &data)).unwrap();
        for name in ["a", "b", "c"] {
            let view = file.find(&[name.to_owned()]).unwrap();
            assert_eq!(file.floats(view, 0), [1.5, -2.0], "{name}");
            assert_eq!(file.floats(view, 1), [-2.0], "{name}");
        }
        assert!(file.find(&["ids".to_owned()]).is_err());
    }

    #[test]
    fn lying_headers_are_refused_with_the_reason() {
        let one = |entry: &str| container(&format!(r#"{{"t":{entry}}}"#), &[0; 16]);
        let cases: Vec<(Vec<u8>, &str)> = vec![
            (vec![1, 2, 3], "truncated"),
            (u64::MAX.to_le_bytes().to_vec(), "more than"),
            (container("[1]", &[]), "not valid JSON"),
            (one(r#"{"dtype":"F32","shape":[2],"data_offsets":[0,4]}"#), "needs 8 bytes"),
            (one(r#"{"dtype":"F32","shape":[5],"data_offsets":[0,20]}"#), "beyond the file"),
            (one(r#"{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}"#), "shape holds -1"),
            (one(r#"{"dtype":"F32","shape":[1],"data_offsets":[8,4]}"#), "needs 4 bytes"),
            (one(r#"{"dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,16]}"#), "beyond the file"),
            (
                one(r#"{"dtype":"F32","shape":[0],"data_offsets":[18446744073709551615,18446744073709551615]}"#),
                "beyond",
            ),
            (one(r#"{"dtype":"F32","shape":[4]}"#), "no data_offsets"),
            (one(r#"7"#), "no dtype"),
        ];
        for (bytes, reason) in cases {
            let error = open(&bytes).unwrap_err().to_string();
            assert!(error.contains(reason), "{error:?} does not say {reason:?}");
        }
    }
}
