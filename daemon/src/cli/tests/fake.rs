//! A daemon without engine and index: it keeps a list of roots that become ready after a few looks, and answers
//! questions by their text.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use satchel_ipc::wire::*;
use satchel_ipc::{CancelReason, Code, ErrorBody, Exchange, Reply, Request, Service};
use tokio::sync::watch;

use crate::cli::backend::{Backend, ModelRow, Report};
use crate::cli::bench::BenchArgs;
use crate::cli::complete::CompleteArgs;
use crate::cli::serve::ServeArgs;
use crate::paths::Paths;

/// Terminal control in every text that comes from "documents".
pub const HOSTILE: &str = "\x1b[2J\x1b]0;owned\x07";

#[derive(Default)]
pub struct Fake {
    /// Watched folders, and how many looks each still takes to be ready.
    pub roots: Mutex<Vec<(String, u32)>>,
    /// Looks a new root takes.
    pub looks: u32,
    pub unavailable: bool,
    pub endless_files: bool,
    pub asked: Mutex<Vec<AskRequest>>,
    pub ends: watch::Sender<Vec<CancelReason>>,
}

pub fn citation(n: u32) -> Citation {
    Citation {
        n,
        document_id: "/notes/lease.md".into(),
        path: format!("/notes/lease{HOSTILE}.md"),
        page: None,
        line_start: 12,
        line_end: 14,
        quote: format!("The lease ends on 31 May 2027. {HOSTILE}"),
        byte_start: 100,
        byte_end: 130,
        verified: n == 1,
    }
}

impl Fake {
    fn roots(&self) -> Reply {
        let mut roots = self.roots.lock().unwrap();
        let entries = roots.iter_mut().map(|(path, looks)| {
            let state = match *looks {
                _ if self.unavailable => RootState::Unavailable,
                0 => RootState::Ready,
                _ => RootState::Indexing,
            };
            let pending = u64::from(*looks);
            *looks = looks.saturating_sub(1);
            let reason = self.unavailable.then(|| "not mounted".to_string());
            RootEntry { path: path.clone(), state, files: 5, pending, reason }
        });
        Reply::Roots(RootsReply { roots: entries.collect() })
    }

    fn ask(&self, request: &AskRequest, exchange: &Exchange) -> Result<Reply, ErrorBody> {
        self.asked.lock().unwrap().push(request.clone());
        match request.question.as_str() {
            "block" => {
                assert!(exchange.cancel.wait(Duration::from_secs(20)), "never cancelled");
                let reason = exchange.cancel.reason().unwrap();
                self.ends.send_modify(|ends| ends.push(reason));
                Err(reason.to_error())
            }
            "unknown" => Ok(Reply::Ask(AskReply {
                answer: "The documents do not say.".into(),
                abstained: true,
                ..AskReply::default()
            })),
            _ => {
                for text in ["It ends ", "in May."] {
                    exchange.events.emit(Event::Token { text: text.into() })?;
                }
                Ok(Reply::Ask(AskReply {
                    answer: format!("It ends in May. [1][2]{HOSTILE}"),
                    citations: vec![citation(1), citation(2)],
                    ..AskReply::default()
                }))
            }
        }
    }

    fn files(&self, request: &FilesRequest) -> FilesReply {
        let entry = |name: &str, state, reason: Option<&str>| FileEntry {
            path: format!("/notes/{name}"),
            state,
            reason: reason.map(str::to_string),
            since: 1,
            kind: "text".into(),
            bytes: 2048,
            passages: 3,
        };
        match request.after.as_deref() {
            None => {
                FilesReply { files: vec![entry("a.txt", FileState::Indexed, None)], next: Some("/notes/a.txt".into()) }
            }
            Some(after) => FilesReply {
                files: vec![entry(&format!("b{HOSTILE}.pdf"), FileState::Failed, Some("no text\nin it"))],
                next: self.endless_files.then(|| after.to_string()),
            },
        }
    }
}

impl Service for Fake {
    fn handle(&self, request: Request, exchange: &Exchange) -> Result<Reply, ErrorBody> {
        match request {
            Request::Status => Ok(Reply::Status(Box::new(StatusReply {
                version: "0.1.0".into(),
                pid: std::process::id(),
                state: DaemonState::Indexing,
                index: IndexStatus { documents: 1234, pending: 3, failed: 2, bytes: 5 << 20, ..IndexStatus::default() },
                model: Some(ModelStatus {
                    name: "qwen2.5-coder-1.5b-instruct".into(),
                    arch: "qwen2".into(),
                    quant: "Q4_K_M".into(),
                    context: 4096,
                }),
                index_lag_ms: 1500,
                warnings: vec![format!("watch limit reached{HOSTILE}")],
                ..StatusReply::default()
            }))),
            Request::Search(request) if request.query == "nothing" => Ok(Reply::Search(SearchReply::default())),
            Request::Search(request) => Ok(Reply::Search(SearchReply {
                hits: vec![Hit {
                    path: format!("/notes/{HOSTILE}/lease.pdf"),
                    title: format!("Lease {HOSTILE}"),
                    page: Some(2),
                    line_start: 1,
                    line_end: 9,
                    score: 0.75,
                    text: format!("{} {HOSTILE} ", request.query).repeat(40),
                    ..Hit::default()
                }],
                took_ms: 1,
                generation: 7,
            })),
            Request::Ask(request) => self.ask(&request, exchange),
            Request::Roots => Ok(self.roots()),
            Request::AddRoot(request) => {
                self.roots.lock().unwrap().push((request.path, self.looks));
                Ok(self.roots())
            }
            Request::RemoveRoot(request) => {
                self.roots.lock().unwrap().retain(|(path, _)| *path != request.path);
                Ok(self.roots())
            }
            Request::Files(request) => Ok(Reply::Files(self.files(&request))),
            Request::Forget(request) => {
                let remaining = u64::from(request.path.ends_with("sticky"));
                Ok(Reply::Forget(ForgetReply { path: request.path, documents: 1, passages: 2, remaining }))
            }
            Request::Events => {
                for files_done in 0..5 {
                    let progress = IndexProgress { files_done, files_total: 5, ..IndexProgress::default() };
                    exchange.events.emit(Event::Progress(progress))?;
                }
                exchange.cancel.wait(Duration::from_secs(60));
                Ok(Reply::Closed {})
            }
        }
    }
}

/// A backend over `Fake`.
pub struct FakeBackend;

fn row(name: &str) -> ModelRow {
    ModelRow { name: name.into(), role: "llm".into(), bytes: 1 << 30, installed: true, ..ModelRow::default() }
}

fn report() -> Report {
    Report { rows: vec![("isa".into(), "avx2".into())], json: serde_json::json!({"isa": "avx2"}) }
}

impl Backend for FakeBackend {
    type Service = Fake;

    fn start(&self, paths: &Paths, _: &ServeArgs) -> Result<Arc<Fake>, ErrorBody> {
        let looks = 3;
        if paths.home.join("refuse").exists() {
            return Err(ErrorBody::new(Code::ModelMissing, "no model for this test"));
        }
        Ok(Arc::new(Fake { looks, ..Fake::default() }))
    }

    fn stop(&self, _: Arc<Fake>) {}

    fn models(&self, _: &Paths) -> Result<Vec<ModelRow>, ErrorBody> {
        Ok(vec![ModelRow { in_use: true, ..row("smollm2-135m-instruct") }])
    }

    fn pull_model(
        &self,
        _: &Paths,
        name: &str,
        progress: &mut dyn FnMut(&DownloadProgress) -> bool,
    ) -> Result<ModelRow, ErrorBody> {
        let state = DownloadProgress { name: name.into(), bytes_done: 1, ..DownloadProgress::default() };
        assert!(progress(&state));
        if name == "slow" {
            while progress(&state) {}
            return Err(ErrorBody::new(Code::Cancelled, "stopped"));
        }
        if name == "absent" {
            return Err(ErrorBody::new(Code::ModelMissing, "no model is called \"absent\""));
        }
        Ok(row(name))
    }

    fn import_model(&self, _: &Paths, path: &Path) -> Result<ModelRow, ErrorBody> {
        Ok(row(&path.display().to_string()))
    }

    fn use_model(&self, _: &Paths, name: &str) -> Result<ModelRow, ErrorBody> {
        Ok(row(name))
    }

    fn show_model(&self, _: &Paths, _: &str) -> Result<Report, ErrorBody> {
        Ok(report())
    }

    fn doctor(&self, _: &Paths) -> Result<Report, ErrorBody> {
        Ok(report())
    }

    fn bench(&self, _: &Paths, _: &BenchArgs) -> Result<Report, ErrorBody> {
        Ok(report())
    }

    fn complete(
        &self,
        _: &Paths,
        args: &CompleteArgs,
        piece: &mut dyn FnMut(&str) -> bool,
    ) -> Result<Report, ErrorBody> {
        if args.prompt == "slow" {
            while piece("") {}
            return Ok(report());
        }
        assert!(piece("one\n") && piece("two\x1b"));
        Ok(report())
    }
}
