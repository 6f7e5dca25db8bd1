//! `satchel complete`: the engine alone, greedy, without a template.

use std::sync::Arc;

use satchel_engine::error::RunError;
use satchel_engine::pool::Pool;
use satchel_engine::sample::argmax;
use satchel_engine::tokenizer::Utf8Stream;
use satchel_engine::{Llm, Session, Special, Tokenizer};
use satchel_ipc::{Code, ErrorBody};

use crate::app::invalid;
use crate::backend::Rows;
use crate::cli::backend::Report;
use crate::cli::complete::CompleteArgs;
use crate::models::Store;
use crate::threads::compute_threads;

/// Continues the prompt; `piece` gets the text as it comes and ends the generation by returning false.
pub fn run(store: &Store, args: &CompleteArgs, piece: &mut dyn FnMut(&str) -> bool) -> Result<Report, ErrorBody> {
    let path = store.resolve(&args.model)?;
    let threads = args.threads.map_or_else(compute_threads, usize::from);
    let llm = Arc::new(Llm::open(&path, Arc::new(Pool::new(threads))).map_err(|e| invalid(&args.model, &e))?);
    let tokenizer = Tokenizer::from_gguf(llm.gguf().metadata()).map_err(|e| invalid(&args.model, &e))?;
    let prompt = tokenizer.encode_framed(&args.prompt, Special::Text).map_err(|e| told(&e))?;
    if prompt.is_empty() {
        return Err(ErrorBody::bad_request("the prompt is empty"));
    }
    let capacity = (prompt.len() + args.max_tokens as usize).min(llm.config().context);
    let mut session =
        Session::with_cache(Arc::clone(&llm), capacity.max(prompt.len()), args.kv_type).map_err(|e| told(&e))?;
    let mut logits = prefill(&mut session, &prompt, args.logits.is_some())?;
    let (mut ids, mut text, mut stream) = (Vec::new(), String::new(), Utf8Stream::default());
    while ids.len() < args.max_tokens as usize {
        let id = argmax(session.logits());
        if tokenizer.is_end(id) {
            break;
        }
        ids.push(id);
        let shown = stream.push(tokenizer.token_bytes(id));
        text.push_str(&shown);
        if (!shown.is_empty() && !piece(&shown)) || session.tokens().len() == session.capacity() {
            break;
        }
        session.extend(&[id], &|| false).map_err(|e| told(&e))?;
        if args.logits.is_some() {
            logits.extend_from_slice(session.logits());
        }
    }
    if let Some(file) = &args.logits {
        let bytes: Vec<u8> = logits.iter().flat_map(|l| l.to_le_bytes()).collect();
        std::fs::write(file, bytes)
            .map_err(|e| ErrorBody::new(Code::Error, format!("cannot write {}: {e}", file.display())))?;
    }
    let mut rows = Rows::default();
    rows.hide("prompt_ids", prompt);
    rows.hide("ids", ids);
    rows.hide("text", text);
    Ok(rows.finish())
}

/// Computes the prompt; with the logits of all its positions when they are wanted.
fn prefill(session: &mut Session, prompt: &[u32], all: bool) -> Result<Vec<f32>, ErrorBody> {
    if all {
        return session.extend_with_logits(prompt).map_err(|e| told(&e));
    }
    session.prefill(prompt, &|| false).map_err(|e| told(&e))?;
    Ok(Vec::new())
}

fn told(e: &RunError) -> ErrorBody {
    let code = match e {
        RunError::TooLong { .. } => Code::TooLong,
        RunError::NotFinite => Code::ModelInvalid,
        _ => Code::Error,
    };
    ErrorBody::new(code, e.to_string())
}
