//! What is in a model's file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use satchel_engine::Config;
use satchel_engine::gguf::{Gguf, Value};

use super::error::ModelError;
use super::limits::SHOWN_CHARACTERS;
use super::store::{Record, Store};

/// Tensors of one storage type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeShare {
    /// The type.
    pub ty: String,
    /// How many tensors have it.
    pub tensors: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A model's file, looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    /// The file.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Where it came from, for one in the store.
    pub record: Option<Record>,
    /// The hyperparameters that the engine read from it.
    pub config: Config,
    /// Numbers in all tensors.
    pub parameters: u64,
    /// Storage types, the largest share first.
    pub types: Vec<TypeShare>,
    /// All metadata, sorted; long values are shortened.
    pub metadata: Vec<(String, String)>,
}

/// Looks at a model given by name or path.
///
/// # Errors
/// It is not installed, or its file cannot be used.
pub fn show(store: &Store, name: &str) -> Result<Shown, ModelError> {
    let path = store.resolve(name)?;
    let invalid = |source| ModelError::Invalid { path: path.clone(), source };
    let gguf = Gguf::open(&path).map_err(invalid)?;
    let config = Config::from_gguf(&gguf).map_err(invalid)?;
    let mut by_type: BTreeMap<String, TypeShare> = BTreeMap::new();
    let mut parameters = 0;
    for tensor in gguf.tensors() {
        parameters += tensor.dims.iter().product::<u64>();
        let ty = tensor.ty.to_string();
        let share = by_type.entry(ty.clone()).or_insert(TypeShare { ty, tensors: 0, bytes: 0 });
        share.tensors += 1;
        share.bytes += tensor.bytes;
    }
    let mut types: Vec<TypeShare> = by_type.into_values().collect();
    types.sort_by_key(|share| std::cmp::Reverse(share.bytes));
    let m = gguf.metadata();
    let metadata = m.keys().into_iter().filter_map(|key| Some((key.to_owned(), short(m.get(key)?)))).collect();
    let record = if store.is_installed(name) { store.record(name) } else { None };
    Ok(Shown { bytes: super::files::size(&path), path, record, config, parameters, types, metadata })
}

/// A value in one short line.
fn short(value: &Value) -> String {
    match value {
        Value::Unsigned(v) => v.to_string(),
        Value::Signed(v) => v.to_string(),
        Value::Float(v) => v.to_string(),
        Value::Bool(v) => v.to_string(),
        Value::Strings(all) => format!("[{} strings]", all.len()),
        Value::Integers(all) => format!("[{} integers]", all.len()),
        Value::Floats(all) => format!("[{} floats]", all.len()),
        Value::String(s) => {
            let head: String = s.chars().take(SHOWN_CHARACTERS).collect();
            if head.len() < s.len() { format!("{head}… ({} bytes)", s.len()) } else { head }
        }
    }
}
