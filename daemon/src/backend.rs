//! What the command line calls that does not go through the socket.

use std::path::Path;
use std::sync::Arc;

use satchel_ipc::ErrorBody;
use satchel_ipc::wire::DownloadProgress;
use serde_json::json;

use crate::app::App;
use crate::cli::backend::{Backend, ModelRow, Report};
use crate::cli::bench::BenchArgs;
use crate::cli::complete::CompleteArgs;
use crate::cli::serve::ServeArgs;
use crate::models::Store;
use crate::models::backend as models;
use crate::paths::Paths;
use crate::{bench, complete, doctor};

/// The parts of this binary.
pub struct Local;

impl Backend for Local {
    type Service = App;

    fn start(&self, paths: &Paths, args: &ServeArgs) -> Result<Arc<App>, ErrorBody> {
        App::start(paths, args)
    }

    fn stop(&self, service: Arc<App>) {
        service.stop();
    }

    fn models(&self, paths: &Paths) -> Result<Vec<ModelRow>, ErrorBody> {
        models::models(paths)
    }

    fn pull_model(
        &self,
        paths: &Paths,
        name: &str,
        progress: &mut dyn FnMut(&DownloadProgress) -> bool,
    ) -> Result<ModelRow, ErrorBody> {
        models::pull_model(paths, name, progress)
    }

    fn import_model(&self, paths: &Paths, path: &Path) -> Result<ModelRow, ErrorBody> {
        models::import_model(paths, path)
    }

    fn use_model(&self, paths: &Paths, name: &str) -> Result<ModelRow, ErrorBody> {
        models::use_model(paths, name)
    }

    fn show_model(&self, paths: &Paths, name: &str) -> Result<Report, ErrorBody> {
        models::show_model(paths, name)
    }

    fn doctor(&self, paths: &Paths) -> Result<Report, ErrorBody> {
        doctor::report(paths)
    }

    fn bench(&self, paths: &Paths, args: &BenchArgs) -> Result<Report, ErrorBody> {
        bench::run(&Store::new(&paths.models), args)
    }

    fn complete(
        &self,
        paths: &Paths,
        args: &CompleteArgs,
        piece: &mut dyn FnMut(&str) -> bool,
    ) -> Result<Report, ErrorBody> {
        complete::run(&Store::new(&paths.models), args, piece)
    }
}

/// A report row by row, the same for people and programs.
#[derive(Default)]
pub struct Rows {
    rows: Vec<(String, String)>,
    json: serde_json::Map<String, serde_json::Value>,
}

impl Rows {
    /// Adds a fact under `key`, shown as `label` with `text`.
    pub fn add(&mut self, key: &str, label: &str, text: impl Into<String>, value: impl Into<serde_json::Value>) {
        self.rows.push((label.to_owned(), text.into()));
        self.json.insert(key.to_owned(), value.into());
    }

    /// Adds a fact whose text is its value.
    pub fn say(&mut self, key: &str, label: &str, text: impl Into<String>) {
        let text = text.into();
        self.add(key, label, text.clone(), text);
    }

    /// Adds a fact for programs only.
    pub fn hide(&mut self, key: &str, value: impl Into<serde_json::Value>) {
        self.json.insert(key.to_owned(), value.into());
    }

    /// The finished report.
    pub fn finish(self) -> Report {
        Report { rows: self.rows, json: json!(self.json) }
    }
}
