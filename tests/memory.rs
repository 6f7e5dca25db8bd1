//! Memory that the engine takes, as the system counts it.

use serde_json::Value;

use crate::harness::{Home, WRITER};

/// What may be resident besides the model file and the KV cache.
const ALL_ELSE: u64 = 100 << 20;
/// Tokens in the cache when the measuring ends.
const CONTEXT: u64 = 4096;

/// Loads the small model in a process of its own, fills a cache of 4,096 tokens, and gives what that process tells.
fn full_context(kv_type: &str) -> Value {
    let home = Home::new();
    let context = (CONTEXT - 1).to_string();
    let args = ["bench", "--json", "--model", WRITER, "--prefill", "0", "--decode", "1", "--context", &context];
    home.run(args.into_iter().chain(["--kv-type", kv_type])).ok().json()
}

#[test]
fn a_loaded_model_with_a_full_context_takes_its_file_its_cache_and_little_else() {
    let halves = full_context("f16");
    let bytes = |report: &Value, name: &str| report[name].as_u64().unwrap();
    // 30 layers, 3 heads of 64 dimensions for keys and values, two bytes each.
    assert_eq!(bytes(&halves, "kv_bytes"), CONTEXT * 30 * 3 * 64 * 2 * 2);
    let eighths = full_context("q8_0");
    assert!(bytes(&eighths, "kv_bytes") * 100 < bytes(&halves, "kv_bytes") * 54);
    for report in [halves, eighths] {
        let [model, kv, peak] = ["model_bytes", "kv_bytes", "peak_bytes"].map(|name| bytes(&report, name));
        assert!(peak > kv, "the cache was filled: {report}");
        assert!(peak <= model + kv + ALL_ELSE, "{report}");
    }
}
