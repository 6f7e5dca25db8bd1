//! What the command line needs from the rest of the daemon.

use std::sync::Arc;

use satchel_ipc::wire::DownloadProgress;
use satchel_ipc::{ErrorBody, Service};
use serde_json::Value;

use super::bench::BenchArgs;
use super::complete::CompleteArgs;
use super::serve::ServeArgs;
use crate::paths::Paths;

/// The daemon's own parts, behind the commands that do not go through the socket.
/// Errors carry the code that decides the exit code.
pub trait Backend {
    /// What answers on the socket.
    type Service: Service;

    /// Opens the index and starts its threads. It returns before models are loaded or files scanned: the socket
    /// is served at once, and tells how far the rest is.
    fn start(&self, paths: &Paths, args: &ServeArgs) -> Result<Arc<Self::Service>, ErrorBody>;

    /// Ends what `start` began, after the socket is closed.
    fn stop(&self, service: Arc<Self::Service>);

    /// The catalogue and what is installed.
    fn models(&self, paths: &Paths) -> Result<Vec<ModelRow>, ErrorBody>;

    /// Fetches a model of the catalogue, resuming what is there. `progress` is told now and then; when it returns
    /// false the download stops, keeps its part, and gives `cancelled`.
    fn pull_model(
        &self,
        paths: &Paths,
        name: &str,
        progress: &mut dyn FnMut(&DownloadProgress) -> bool,
    ) -> Result<ModelRow, ErrorBody>;

    /// Copies or converts a model file or folder into the home.
    fn import_model(&self, paths: &Paths, path: &std::path::Path) -> Result<ModelRow, ErrorBody>;

    /// Makes a model the one that answers, or that embeds, by its role.
    fn use_model(&self, paths: &Paths, name: &str) -> Result<ModelRow, ErrorBody>;

    /// What is in a model's file.
    fn show_model(&self, paths: &Paths, name: &str) -> Result<Report, ErrorBody>;

    /// What is active on this machine.
    fn doctor(&self, paths: &Paths) -> Result<Report, ErrorBody>;

    /// Measures.
    fn bench(&self, paths: &Paths, args: &BenchArgs) -> Result<Report, ErrorBody>;

    /// Generates greedily. `piece` is given the text as it comes; when it returns false, generation ends.
    fn complete(
        &self,
        paths: &Paths,
        args: &CompleteArgs,
        piece: &mut dyn FnMut(&str) -> bool,
    ) -> Result<Report, ErrorBody>;
}

/// The same facts twice: as rows for people and as JSON for programs.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Label and value, in the order of reading.
    pub rows: Vec<(String, String)>,
    /// The object that `--json` prints.
    pub json: Value,
}

/// A model of the catalogue, or one that was imported.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct ModelRow {
    /// The name to call it by.
    pub name: String,
    /// `llm` or `embedder`.
    pub role: String,
    /// The licence.
    pub licence: String,
    /// Bytes of the file.
    pub bytes: u64,
    /// Whether the whole file is here.
    pub installed: bool,
    /// Whether it is the one in use for its role.
    pub in_use: bool,
    /// Where the file is, when installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// SHA-256 of the file, hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}
