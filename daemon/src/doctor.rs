//! `satchel doctor`: what is active.

use satchel_engine::kernels::Kernels;
use satchel_engine::quant::TensorType;
use satchel_ipc::ErrorBody;
use serde_json::json;

use crate::backend::Rows;
use crate::cli::backend::Report;
use crate::models::{self, Store};
use crate::paths::Paths;
use crate::threads::compute_threads;
use crate::{app, translate};

/// What is active on this machine. It never fails for something that is merely missing: it says so.
pub fn report(paths: &Paths) -> Result<Report, ErrorBody> {
    let store = Store::new(&paths.models);
    let mut rows = Rows::default();
    rows.say("version", "version", env!("CARGO_PKG_VERSION"));
    let kernels = Kernels::detect();
    rows.say("isa", "kernels", kernels.name());
    let all: Vec<&str> = Kernels::available().iter().map(|k| k.name()).collect();
    rows.add("available", "kernels available", all.join(", "), all);
    rows.add("threads", "threads", compute_threads().to_string(), compute_threads());
    let types: Vec<String> =
        TensorType::ALL.iter().map(|t| format!("{t}: {}", kernel_of(*t, kernels.name()))).collect();
    rows.add("tensor_types", "tensor types", types.join("; "), types);
    rows.say(
        "precision",
        "precision",
        "weights as stored, activations int8 in blocks of 32, KV cache f16 (or q8_0 by --kv-type), sums f32",
    );
    let jail = app::jail(paths, None)?;
    // Asked of a process that has really entered it.
    let level = jail.level().map_err(|e| translate::index_error(&e).message);
    rows.say("sandbox", "parser sandbox", level.map_or_else(|e| format!("none: {e}"), |level| level.to_string()));
    let passwords = match (jail.passwords_trouble(), paths.passwords.exists()) {
        (Some(trouble), _) => trouble,
        (None, true) => format!("{} is tried on locked files", paths.passwords.display()),
        (None, false) => format!("none ({} is not there)", paths.passwords.display()),
    };
    rows.say("passwords", "passwords", passwords);
    let memory = models::available_memory();
    let shown = memory.map_or_else(|| "unknown".to_owned(), |n| format!("{} MiB available", n >> 20));
    rows.add("memory_available_bytes", "memory", shown, memory);
    let watches = std::fs::read_to_string("/proc/sys/fs/inotify/max_user_watches").ok();
    let watches = watches.and_then(|n| n.trim().parse::<u64>().ok());
    let shown = watches.map_or_else(|| "native events".to_owned(), |n| format!("inotify, up to {n} folders"));
    rows.add("watches_max", "watcher", shown, watches);
    let choice = store.llm_to_use(memory)?;
    let state = |name: &str| if store.is_installed(name) { "installed" } else { "not downloaded yet" };
    rows.add(
        "llm",
        "model that answers",
        format!("{} ({}; {})", choice.name, state(&choice.name), choice.why),
        json!({"name": choice.name, "installed": store.is_installed(&choice.name), "why": choice.why}),
    );
    let embedder = store.embedder_to_use()?;
    rows.add(
        "embedder",
        "model that embeds",
        format!("{} ({}; {})", embedder.name, state(&embedder.name), embedder.why),
        json!({"name": embedder.name, "installed": store.is_installed(&embedder.name), "why": embedder.why}),
    );
    for (key, label, path) in [
        ("home", "home", &paths.home),
        ("socket", "socket", &paths.socket),
        ("index", "index", &paths.index),
        ("models", "models", &paths.models),
        ("log", "log", &paths.log),
    ] {
        rows.say(key, label, path.display().to_string());
    }
    let running = std::os::unix::net::UnixStream::connect(&paths.socket).is_ok();
    rows.add("daemon", "daemon", if running { "running" } else { "not running" }, running);
    Ok(rows.finish())
}

/// How matrices of a type are multiplied.
pub fn kernel_of(t: TensorType, isa: &str) -> String {
    if t.is_float() { format!("{isa} float") } else { format!("{isa} int8") }
}
