//! `satchel status`.

use std::io::Write;
use std::time::Duration;

use satchel_ipc::wire::{IndexStatus, StatusReply};

use super::exit::{Exit, Failure};
use super::render::{bytes, count, duration, escape, pairs};
use super::session::Session;
use super::terminal::Terminal;

pub async fn run(session: &Session, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let status = session.client.status().await?;
    if terminal.json {
        terminal.print_json(&status)?;
        return Ok(Exit::Done);
    }
    write!(terminal.out, "{}", pairs(&rows(&status)))?;
    for warning in &status.warnings {
        writeln!(terminal.out, "warning: {}", escape(warning))?;
    }
    if status.index.failed > 0 {
        terminal.note("`satchel files --state failed` lists the failures with their reasons")?;
    }
    Ok(Exit::Done)
}

fn rows(status: &StatusReply) -> Vec<(&'static str, String)> {
    let none = || "none yet".to_string();
    let model = status.model.as_ref().map_or_else(none, |model| {
        format!("{} ({}, {}, context {})", model.name, model.arch, model.quant, count(model.context))
    });
    let embedder = status
        .embedder
        .as_ref()
        .map_or_else(none, |embedder| format!("{} ({} dimensions)", embedder.name, embedder.dim));
    let memory = &status.memory;
    let budget =
        memory.budget_bytes.map_or_else(|| "no budget set".to_string(), |budget| format!("of {}", bytes(budget)));
    let lag = match status.index_lag_ms {
        0 => "up to date".to_string(),
        ms => format!("{} behind", duration(Duration::from_millis(ms))),
    };
    vec![
        ("daemon", format!("{}, version {}, process {}", status.state.name(), status.version, status.pid)),
        ("model", model),
        ("embedder", embedder),
        ("files", files(&status.index)),
        ("passages", count(status.index.passages)),
        ("index", format!("{lag}, generation {}, {}", status.index.generation, bytes(status.index.bytes))),
        (
            "memory",
            format!(
                "{} {budget} (peak {}, KV cache {})",
                bytes(memory.resident_bytes),
                bytes(memory.peak_resident_bytes),
                bytes(memory.kv_bytes)
            ),
        ),
        ("kernels", status.kernels.isa.clone()),
    ]
}

/// Every state that has files in it. Done is only said of what is done.
fn files(index: &IndexStatus) -> String {
    let counts = [
        (index.documents, "indexed"),
        (index.pending, "pending"),
        (index.failed, "failed"),
        (index.locked, "locked"),
        (index.needs_ocr, "need OCR"),
        (index.empty, "empty"),
        (index.excluded, "excluded"),
    ];
    let shown: Vec<_> = counts
        .iter()
        .filter(|(number, name)| *number > 0 || *name == "indexed")
        .map(|(number, name)| format!("{} {name}", count(*number)))
        .collect();
    shown.join(", ")
}
