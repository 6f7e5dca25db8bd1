//! What the language models compute is what llama.cpp computes: the same greedy tokens wherever it is sure of them, and
//! next-token distributions nearer to float arithmetic than its own. `docs/accuracy.md` has the figures.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[path = "support/golden.rs"]
mod golden;
mod support;

use std::sync::Arc;

use golden::{Golden, Greedy};
use satchel_engine::kernels::Kernels;
use satchel_engine::pool::Pool;
use satchel_engine::{Llm, Session};

/// Mean divergence from llama.cpp that is allowed in any case, in nats.
const DIVERGENCE: f64 = 1e-3;
/// llama.cpp rounds activations too. Where its own noise is above `DIVERGENCE`, two engines with independent noise may
/// differ by as much as it does, times this.
const NOISE_FACTOR: f64 = 1.2;
/// By how much llama.cpp's first choice leads, in logits, where steps are counted as decided.
const GAP: f64 = 0.05;
/// By how much it must lead to be binding: beyond what either engine's rounding moves a logit.
const BINDING_GAP: f64 = 0.25;
/// Share of decided steps that may fall otherwise below the binding gap.
const OTHERWISE: f64 = 0.02;
/// Tokens of a pass: fewer than the prompt has, so that the second pass reads the cache of the first.
const PASS: usize = 128;

fn session(name: &str, kernels: &'static Kernels) -> Session {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let llm = Llm::open_with(&support::model(name), Arc::new(Pool::new(threads)), kernels).unwrap();
    Session::new(Arc::new(llm), 512).unwrap()
}

/// Mean divergences from llama.cpp and from float arithmetic over the first `positions` of the golden prompt.
fn divergences(session: &mut Session, golden: &Golden, positions: usize) -> (f64, f64) {
    let vocab = session.llm().config().vocab;
    session.truncate(0);
    let (mut from_llama, mut from_exact) = (0.0, 0.0);
    for pass in golden.ids[..=positions].chunks(PASS) {
        let first = session.tokens().len();
        let logits = session.extend_with_logits(pass).unwrap();
        for (i, row) in logits.chunks_exact(vocab).enumerate() {
            if let Some(position) = (first + i).checked_sub(1) {
                from_llama += golden.llama.divergence(position, row);
                from_exact += golden.exact.as_ref().map_or(0.0, |exact| exact.divergence(position, row));
            }
        }
    }
    (from_llama / positions as f64, from_exact / positions as f64)
}

/// Follows llama.cpp's tokens and says where ours differ: at steps that bind, and at all.
fn follow(session: &mut Session, greedy: &Greedy) -> (Vec<String>, usize) {
    session.truncate(0);
    session.prefill(&greedy.prompt_ids, &|| false).unwrap();
    let (mut wrong, mut close) = (Vec::new(), 0);
    for (step, (id, gap)) in greedy.ids.iter().zip(&greedy.gaps).enumerate() {
        let ours = best(session.logits());
        if ours != *id && *gap > GAP {
            assert!(
                *gap <= BINDING_GAP,
                "{:?}, step {step}: {ours} instead of {id}, which led by {gap}",
                greedy.prompt
            );
            wrong.push(format!("{:?}, step {step}: {ours} instead of {id}, which led by {gap}", greedy.prompt));
        }
        close += usize::from(ours != *id && *gap <= GAP);
        session.extend(&[*id], &|| false).unwrap();
    }
    (wrong, close)
}

/// The likeliest token; of equals the first.
fn best(logits: &[f32]) -> u32 {
    let top = (1..logits.len()).fold(0, |best, i| if logits[i] > logits[best] { i } else { best });
    top as u32
}

fn check(name: &str) {
    let golden = Golden::read(name);
    assert_eq!(golden.llama.len(), golden.ids.len() - 1);
    let mut session = session(name, Kernels::detect());
    let isa = session.llm().kernels().name();
    let (from_llama, from_exact) = divergences(&mut session, &golden, golden.llama.len());
    support::say(&format!(
        "{name}, {isa}: KL from llama.cpp {from_llama:.6}, llama.cpp from itself {:.6}; from float arithmetic: ours \
         {from_exact:.6}, llama.cpp's {:.6}",
        golden.noise,
        golden.exact_to_llama.unwrap_or(f64::NAN)
    ));
    let (mut wrong, mut close, mut binding) = (Vec::new(), 0, 0);
    for greedy in &golden.greedy {
        let found = follow(&mut session, greedy);
        wrong.extend(found.0);
        close += found.1;
        binding += greedy.gaps.iter().filter(|gap| **gap > GAP).count();
    }
    let steps: usize = golden.greedy.iter().map(|g| g.ids.len()).sum();
    support::say(&format!(
        "{name}, {isa}: {binding} of {steps} greedy steps bind, {} differ; of the others {close}",
        wrong.len()
    ));
    assert!(wrong.len() as f64 <= OTHERWISE * binding as f64, "{name}: {}", wrong.join("\n"));
    let allowed = DIVERGENCE.max(NOISE_FACTOR * golden.noise.max(golden.exact_to_llama.unwrap_or(0.0)));
    assert!(from_llama <= allowed, "{name}: the mean divergence from llama.cpp is {from_llama}, allowed {allowed}");
    if let Some(theirs) = golden.exact_to_llama {
        assert!(from_exact <= theirs, "{name}: {from_exact} from float arithmetic, llama.cpp is nearer with {theirs}");
    }
}

#[test]
fn smollm2_computes_what_llama_cpp_does() {
    check("smollm2-135m-instruct");
}

/// The larger models' files are not everywhere.
fn check_where_present(name: &str) {
    if support::present(name) {
        check(name);
    }
}

#[test]
fn gemma3_computes_what_llama_cpp_does() {
    check_where_present("gemma-3-270m");
}

#[test]
fn qwen_half_a_billion_computes_what_llama_cpp_does() {
    check_where_present("qwen2.5-coder-0.5b-instruct");
}

#[test]
fn qwen_one_and_a_half_billion_computes_what_llama_cpp_does() {
    check_where_present("qwen2.5-coder-1.5b-instruct");
}

/// Every instruction set of this machine, on fewer positions: the scalar one is slow.
#[test]
fn every_instruction_set_computes_it() {
    const POSITIONS: usize = 24;
    let name = "smollm2-135m-instruct";
    let golden = Golden::read(name);
    for kernels in Kernels::available() {
        let mut session = session(name, kernels);
        let (from_llama, from_exact) = divergences(&mut session, &golden, POSITIONS);
        support::say(&format!(
            "{name}, {}: KL from llama.cpp {from_llama:.6}, from float arithmetic {from_exact:.6}",
            kernels.name()
        ));
        // So few positions scatter more.
        let allowed = 2.0 * golden.exact_to_llama.unwrap();
        assert!(from_llama <= allowed && from_exact <= allowed, "{}: {from_llama}", kernels.name());
    }
}
