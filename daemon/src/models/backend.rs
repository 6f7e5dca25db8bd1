//! The store in the terms of the command line and the wire.

use std::path::Path;

use satchel_engine::CacheType;
use satchel_ipc::ErrorBody;
use satchel_ipc::wire::DownloadProgress;
use serde_json::json;

use super::{Listed, Phase, Places, Progress, Shown, Store};
use crate::cli::backend::{ModelRow, Report};
use crate::paths::Paths;

fn store(paths: &Paths) -> Store {
    Store::new(&paths.models)
}

fn row(listed: Listed) -> ModelRow {
    ModelRow {
        name: listed.name,
        role: listed.role.map_or("unusable", |role| role.name()).to_owned(),
        licence: listed.licence.unwrap_or_else(|| "unknown".to_owned()),
        bytes: listed.bytes,
        installed: listed.path.is_some(),
        in_use: listed.in_use,
        path: listed.path.map(|path| path.to_string_lossy().into_owned()),
        sha256: listed.record.map(|record| record.sha256),
    }
}

/// The catalogue and what is installed.
///
/// # Errors
/// The models folder cannot be read.
pub fn models(paths: &Paths) -> Result<Vec<ModelRow>, ErrorBody> {
    Ok(store(paths).list()?.into_iter().map(row).collect())
}

/// Fetches a model; see [`super::pull()`].
///
/// # Errors
/// As [`super::pull()`].
pub fn pull_model(
    paths: &Paths,
    name: &str,
    progress: &mut dyn FnMut(&DownloadProgress) -> bool,
) -> Result<ModelRow, ErrorBody> {
    let places = Places::from_env(|name| std::env::var_os(name));
    let listed = super::pull(&store(paths), name, &places, &mut |now| progress(&wire(now)))?;
    Ok(row(listed))
}

/// Progress as the socket tells it.
#[must_use]
pub fn wire(now: &Progress) -> DownloadProgress {
    let left = now.total.saturating_sub(now.done) as f64;
    let source = match now.phase {
        Phase::Fetching => now.source.clone(),
        Phase::Checking => format!("{}, checking", now.source),
        Phase::Importing => format!("{}, converting", now.source),
    };
    DownloadProgress {
        name: now.name.clone(),
        source: Some(source),
        bytes_done: now.done,
        bytes_total: Some(now.total),
        bytes_per_s: now.bytes_per_s,
        remaining_ms: (now.bytes_per_s > 0.0).then(|| (left / now.bytes_per_s * 1000.0) as u64),
    }
}

/// Takes a file or folder into the store; see [`super::import_path`].
///
/// # Errors
/// As [`super::import_path`].
pub fn import_model(paths: &Paths, path: &Path) -> Result<ModelRow, ErrorBody> {
    Ok(row(super::import_path(&store(paths), path)?))
}

/// Makes a model the one in use for its role.
///
/// # Errors
/// As [`Store::choose`].
pub fn use_model(paths: &Paths, name: &str) -> Result<ModelRow, ErrorBody> {
    let store = store(paths);
    let (kept, role) = store.choose(name)?;
    if store.is_installed(&kept) {
        return Ok(row(store.row(&kept)?));
    }
    let bytes = std::fs::metadata(&kept).map_or(0, |metadata| metadata.len());
    let (role, licence) = (role.name().to_owned(), "unknown".to_owned());
    Ok(ModelRow {
        name: kept.clone(),
        role,
        licence,
        bytes,
        installed: true,
        in_use: true,
        path: Some(kept),
        sha256: None,
    })
}

/// What is in a model's file.
///
/// # Errors
/// As [`super::show()`].
pub fn show_model(paths: &Paths, name: &str) -> Result<Report, ErrorBody> {
    Ok(report(name, &super::show(&store(paths), name)?))
}

fn report(name: &str, shown: &Shown) -> Report {
    let c = &shown.config;
    let record = shown.record.clone().unwrap_or_default();
    let metadata = |key: &str| shown.metadata.iter().find(|(k, _)| k == key).map(|(_, v)| v.clone());
    let licence = record.licence.clone().or_else(|| metadata("general.license"));
    let mut rows = vec![("name".to_owned(), name.to_owned()), ("file".to_owned(), shown.path.display().to_string())];
    let mut add = |label: &str, value: String| rows.push((label.to_owned(), value));
    add("bytes", shown.bytes.to_string());
    add("licence", licence.clone().unwrap_or_else(|| "unknown".to_owned()));
    if shown.record.is_some() {
        add("source", record.source.clone());
        add("sha256", record.sha256.clone());
    }
    add("architecture", metadata("general.architecture").unwrap_or_default());
    add("parameters", shown.parameters.to_string());
    add("layers", c.layers.to_string());
    add("width", c.width.to_string());
    add("heads", format!("{} ({} for keys and values)", c.heads, c.kv_heads));
    add("context", format!("{} tokens", c.context));
    add("vocabulary", format!("{} tokens", c.vocab));
    if !c.is_encoder() {
        add("KV cache", format!("{} bytes a token", c.kv_bytes_per_token(CacheType::F16)));
    }
    for share in &shown.types {
        add(&share.ty, format!("{} tensors, {} bytes", share.tensors, share.bytes));
    }
    rows.extend(shown.metadata.iter().cloned());
    let types: Vec<_> =
        shown.types.iter().map(|t| json!({"type": t.ty, "tensors": t.tensors, "bytes": t.bytes})).collect();
    let pairs: serde_json::Map<String, serde_json::Value> =
        shown.metadata.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    let json = json!({
        "name": name, "path": shown.path, "bytes": shown.bytes, "licence": licence,
        "source": shown.record.as_ref().map(|r| &r.source), "sha256": shown.record.as_ref().map(|r| &r.sha256),
        "parameters": shown.parameters, "layers": c.layers, "width": c.width, "context": c.context, "vocabulary": c.vocab,
        "kv_bytes_per_token": c.kv_bytes_per_token(CacheType::F16), "types": types, "metadata": pairs,
    });
    Report { rows, json }
}
