//! A backend for builds without engine and index: commands that call a running daemon work, the others say plainly
//! that they are not part of the build.

use std::path::Path;
use std::sync::Arc;

use satchel_ipc::wire::DownloadProgress;
use satchel_ipc::{Code, ErrorBody, Exchange, Reply, Request, Service};

use crate::cli::backend::{Backend, ModelRow, Report};
use crate::cli::bench::BenchArgs;
use crate::cli::complete::CompleteArgs;
use crate::cli::serve::ServeArgs;
use crate::paths::Paths;

/// The backend without a daemon.
pub struct Unlinked;

/// A service that cannot exist.
pub enum Never {}

impl Service for Never {
    fn handle(&self, _: Request, _: &Exchange) -> Result<Reply, ErrorBody> {
        match *self {}
    }
}

fn unlinked<T>() -> Result<T, ErrorBody> {
    Err(ErrorBody::new(Code::Error, "this build of satchel has no engine and no index"))
}

impl Backend for Unlinked {
    type Service = Never;

    fn start(&self, _: &Paths, _: &ServeArgs) -> Result<Arc<Never>, ErrorBody> {
        unlinked()
    }

    fn stop(&self, _: Arc<Never>) {}

    fn models(&self, _: &Paths) -> Result<Vec<ModelRow>, ErrorBody> {
        unlinked()
    }

    fn pull_model(
        &self,
        _: &Paths,
        _: &str,
        _: &mut dyn FnMut(&DownloadProgress) -> bool,
    ) -> Result<ModelRow, ErrorBody> {
        unlinked()
    }

    fn import_model(&self, _: &Paths, _: &Path) -> Result<ModelRow, ErrorBody> {
        unlinked()
    }

    fn use_model(&self, _: &Paths, _: &str) -> Result<ModelRow, ErrorBody> {
        unlinked()
    }

    fn show_model(&self, _: &Paths, _: &str) -> Result<Report, ErrorBody> {
        unlinked()
    }

    fn doctor(&self, _: &Paths) -> Result<Report, ErrorBody> {
        unlinked()
    }

    fn bench(&self, _: &Paths, _: &BenchArgs) -> Result<Report, ErrorBody> {
        unlinked()
    }

    fn complete(&self, _: &Paths, _: &CompleteArgs, _: &mut dyn FnMut(&str) -> bool) -> Result<Report, ErrorBody> {
        unlinked()
    }
}
