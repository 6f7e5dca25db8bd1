//! Broken model files: each defect gives its own error, and none a panic.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::borrow::Cow;
use std::io::Write;
use std::panic::catch_unwind;
use std::sync::Arc;

use satchel_engine::error::LoadError;
use satchel_engine::gguf::{Gguf, GgufWriter, Value};
use satchel_engine::pool::Pool;
use satchel_engine::quant::TensorType;
use satchel_engine::{Config, Llm, Session, Tokenizer};

const WIDTH: u64 = 32;
const FFN: u64 = 64;
const VOCAB: u64 = 260;

fn strings(values: &[&str]) -> Value {
    Value::Strings(values.iter().map(|v| (*v).to_owned()).collect())
}

/// The smallest file that is a whole llama: one layer, byte tokens, some merges.
fn small() -> GgufWriter {
    let mut file = GgufWriter::new("llama");
    let numbers = [
        ("llama.block_count", 1),
        ("llama.context_length", 64),
        ("llama.embedding_length", WIDTH),
        ("llama.feed_forward_length", FFN),
        ("llama.attention.head_count", 2),
        ("llama.attention.head_count_kv", 1),
    ];
    numbers.iter().for_each(|(key, value)| file.set(key, &Value::Unsigned(*value)));
    file.set("llama.attention.layer_norm_rms_epsilon", &Value::Float(1e-5f32.into()));
    file.set("tokenizer.ggml.model", &Value::String("gpt2".into()));
    file.set("tokenizer.ggml.pre", &Value::String("smollm".into()));
    file.set("tokenizer.ggml.tokens", &Value::Strings(tokens()));
    let kinds = (0..VOCAB).map(|id| if id == VOCAB - 1 { 3 } else { 1 }).collect();
    file.set("tokenizer.ggml.token_type", &Value::Integers(kinds));
    file.set("tokenizer.ggml.merges", &strings(&["t h", "th e", "a n"]));
    file.set("tokenizer.ggml.eos_token_id", &Value::Unsigned(VOCAB - 1));
    let matrices: [(&str, &[u64]); 12] = [
        ("token_embd.weight", &[WIDTH, VOCAB]),
        ("output_norm.weight", &[WIDTH]),
        ("blk.0.attn_norm.weight", &[WIDTH]),
        ("blk.0.attn_q.weight", &[WIDTH, WIDTH]),
        ("blk.0.attn_k.weight", &[WIDTH, WIDTH / 2]),
        ("blk.0.attn_v.weight", &[WIDTH, WIDTH / 2]),
        ("blk.0.attn_output.weight", &[WIDTH, WIDTH]),
        ("blk.0.ffn_norm.weight", &[WIDTH]),
        ("blk.0.ffn_gate.weight", &[WIDTH, FFN]),
        ("blk.0.ffn_up.weight", &[WIDTH, FFN]),
        ("blk.0.ffn_down.weight", &[FFN, WIDTH]),
        ("output.weight", &[WIDTH, VOCAB]),
    ];
    for (name, dims) in matrices {
        file.tensor(name, dims, if dims.len() == 1 { TensorType::F32 } else { TensorType::F16 });
    }
    file
}

/// The 256 bytes as byte-level BPE spells them, three merges and a control token.
fn tokens() -> Vec<String> {
    let shown = |b: u32| matches!(b, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    let hidden: Vec<u32> = (0..256).filter(|b| !shown(*b)).collect();
    let spell = |b: u32| hidden.iter().position(|h| *h == b).map_or(b, |i| 256 + i as u32);
    let mut tokens: Vec<String> = (0..256).map(|b| char::from_u32(spell(b)).unwrap().to_string()).collect();
    tokens.extend(["th", "the", "an", "<|im_end|>"].map(String::from));
    tokens
}

/// Bytes of a file whose tensors hold small numbers.
fn bytes_of(file: &GgufWriter) -> Vec<u8> {
    let mut sizes = Vec::new();
    // The writer says how many bytes it wants when it is given too few.
    loop {
        let mut out = Vec::new();
        match file.write(&mut out, |i| Cow::Owned(data(sizes.get(i).copied().unwrap_or(0)))) {
            Ok(()) => return out,
            Err(satchel_engine::gguf::WriteError::TensorBytes { planned, .. }) => sizes.push(planned as usize),
            Err(e) => panic!("{e}"),
        }
    }
}

/// Numbers between 0 and 2 both as f16 and as f32.
fn data(n: usize) -> Vec<u8> {
    (0..n).map(|i| [0x35, 0x2e, 0x11, 0x3c][i % 4]).collect()
}

struct File {
    _folder: tempfile::TempDir,
    path: std::path::PathBuf,
}

fn on_disk(bytes: &[u8]) -> File {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.gguf");
    std::fs::File::create(&path).unwrap().write_all(bytes).unwrap();
    File { _folder: folder, path }
}

/// Everything that reads a model file, in the order in which the daemon does.
fn load(bytes: &[u8]) -> Result<(Llm, Tokenizer), LoadError> {
    let file = on_disk(bytes);
    let gguf = Gguf::open(&file.path)?;
    Config::from_gguf(&gguf)?;
    let tokenizer = Tokenizer::from_gguf(gguf.metadata())?;
    Ok((Llm::open(&file.path, Arc::new(Pool::new(1)))?, tokenizer))
}

/// The same, and a step of the model where it loads.
fn load_and_run(bytes: &[u8]) -> Result<(), LoadError> {
    let (llm, tokenizer) = load(bytes)?;
    if let Ok(mut session) = Session::new(Arc::new(llm), 16) {
        let ids = tokenizer.encode("the man\n", satchel_engine::Special::Template).unwrap_or_default();
        // Not finite, too long or outside the vocabulary are answers too.
        let _ = session.extend(&ids[..ids.len().min(8)], &|| false);
        let _ = tokenizer.decode(&ids);
    }
    Ok(())
}

fn refused(bytes: &[u8]) -> LoadError {
    load(bytes).map(|_| ()).expect_err("a broken file was accepted")
}

/// The file with the pair set or replaced, pairs being unique to keys in [`small`].
fn with(key: &str, value: &Value) -> Vec<u8> {
    let mut file = small();
    let plain = bytes_of(&file);
    if find(&plain, key.as_bytes()).is_none() {
        file.set(key, value);
        return bytes_of(&file);
    }
    // Rewrite the value in place: cut the old pair out, append the new one, and keep the counts.
    rewritten(key, value)
}

/// [`small`] with one pair's value replaced.
fn rewritten(key: &str, value: &Value) -> Vec<u8> {
    let folder = on_disk(&bytes_of(&small()));
    let old = Gguf::open(&folder.path).unwrap();
    let architecture = match (key, value) {
        ("general.architecture", Value::String(name)) => name.clone(),
        _ => "llama".to_owned(),
    };
    let mut file = GgufWriter::new(&architecture);
    for k in old.metadata().keys().into_iter().filter(|k| *k != "general.architecture") {
        file.set(k, if k == key { value } else { old.metadata().get(k).unwrap() });
    }
    for t in old.tensors() {
        file.tensor(&t.name, &t.dims, t.ty);
    }
    bytes_of(&file)
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|w| w == what)
}

/// Where the directory entry of a tensor has: its dimension count, its type, its offset.
fn entry(bytes: &[u8], name: &str) -> (usize, usize, usize) {
    let mut key = (name.len() as u64).to_le_bytes().to_vec();
    key.extend_from_slice(name.as_bytes());
    let dims = find(bytes, &key).unwrap() + key.len();
    let n = bytes[dims] as usize;
    (dims, dims + 4 + 8 * n, dims + 8 + 8 * n)
}

fn patched(at: usize, value: &[u8]) -> Vec<u8> {
    let mut bytes = bytes_of(&small());
    bytes[at..at + value.len()].copy_from_slice(value);
    bytes
}

#[test]
fn the_whole_file_loads_and_runs() {
    let bytes = bytes_of(&small());
    let (llm, tokenizer) = load(&bytes).unwrap();
    let ids = tokenizer.encode("the man<|im_end|>", satchel_engine::Special::Text).unwrap();
    assert_eq!((tokenizer.vocab_len(), &ids[..1]), (260, &[257][..]));
    assert_eq!(tokenizer.decode(&ids), "the man<|im_end|>");
    let mut session = Session::new(Arc::new(llm), 32).unwrap();
    session.extend(&ids, &|| false).unwrap();
    assert_eq!(session.logits().len(), 260);
    load_and_run(&bytes).unwrap();
}

#[test]
fn every_cut_is_refused() {
    let bytes = bytes_of(&small());
    let data = bytes.len() - small_data_bytes(&bytes);
    // The directory and the first pairs byte by byte, the token list and the data in steps that are no multiple of
    // anything.
    let near = (0..600).chain(data - 1200..data + 64);
    let mut cuts: Vec<usize> =
        near.chain((600..data).step_by(7)).chain((data..bytes.len() - 32).step_by(1021)).collect();
    cuts.sort_unstable();
    // One file that gets ever shorter; nothing holds it open between two cuts.
    let file = on_disk(&bytes);
    let handle = std::fs::OpenOptions::new().write(true).open(&file.path).unwrap();
    for n in cuts.into_iter().rev() {
        handle.set_len(n as u64).unwrap();
        let error = Gguf::open(&file.path).expect_err("a cut file was accepted");
        let expected = match n {
            0..=3 => matches!(error, LoadError::NotGguf { .. } | LoadError::Io { .. }),
            _ => matches!(error, LoadError::Truncated { .. }),
        };
        assert!(expected, "cut at {n} of {}: {error}", bytes.len());
    }
}

fn small_data_bytes(bytes: &[u8]) -> usize {
    let file = on_disk(bytes);
    let gguf = Gguf::open(&file.path).unwrap();
    bytes.len() - gguf.tensors().first().unwrap().start as usize
}

#[test]
fn headers_of_other_kinds_are_told_apart() {
    assert!(matches!(refused(&patched(0, b"GGML")), LoadError::NotGguf { found } if found == b"GGML"));
    assert!(matches!(refused(&patched(0, b"\x7fELF")), LoadError::NotGguf { .. }));
    assert!(matches!(refused(&patched(4, &3u32.to_be_bytes())), LoadError::BigEndian));
    for version in [0u32, 1, 4, u32::MAX] {
        assert!(matches!(refused(&patched(4, &version.to_le_bytes())), LoadError::Version(v) if v == version));
    }
}

#[test]
fn counts_and_lengths_are_not_believed() {
    for at in [8, 16] {
        for value in [u64::MAX, 1 << 63, 1 << 40, 70_000] {
            let error = refused(&patched(at, &value.to_le_bytes()));
            assert!(matches!(error, LoadError::TooLarge { value: v, .. } if v == value), "{at}, {value}: {error}");
        }
        // One more than there are: what follows is read as something that it is not.
        let bytes = bytes_of(&small());
        let more = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) + 1;
        refused(&patched(at, &more.to_le_bytes()));
    }
    let bytes = bytes_of(&small());
    let key = find(&bytes, b"general.architecture").unwrap();
    for value in [u64::MAX, 1 << 40] {
        let error = refused(&patched(key - 8, &value.to_le_bytes()));
        assert!(matches!(error, LoadError::TooLarge { .. }), "{error}");
    }
    let tokens = find(&bytes, b"tokenizer.ggml.tokens").unwrap() + "tokenizer.ggml.tokens".len() + 8;
    let error = refused(&patched(tokens, &(1u64 << 40).to_le_bytes()));
    assert!(matches!(error, LoadError::TooLarge { .. }), "{error}");
    let error = refused(&patched(tokens, &(1u64 << 21).to_le_bytes()));
    assert!(matches!(error, LoadError::Truncated { .. }), "{error}");
}

#[test]
fn repeated_names_are_refused() {
    let mut file = small();
    file.set("llama.block_count", &Value::Unsigned(2));
    let error = refused(&bytes_of(&file));
    assert!(matches!(&error, LoadError::Malformed { what, .. } if what.contains("llama.block_count")), "{error}");

    let mut file = small();
    file.tensor("output_norm.weight", &[WIDTH], TensorType::F32);
    let error = refused(&bytes_of(&file));
    assert!(matches!(&error, LoadError::TensorLayout { tensor, .. } if tensor == "output_norm.weight"), "{error}");
}

#[test]
fn tensors_that_overlap_leave_gaps_or_end_outside_are_refused() {
    let bytes = bytes_of(&small());
    let (.., offset) = entry(&bytes, "blk.0.attn_q.weight");
    let right = u64::from_le_bytes(bytes[offset..offset + 8].try_into().unwrap());
    for wrong in [0, right - 32, right + 32, right + 1, u64::MAX, u64::MAX - 31] {
        let error = refused(&patched(offset, &wrong.to_le_bytes()));
        let named = matches!(&error, LoadError::TensorLayout { tensor, .. } if tensor == "blk.0.attn_q.weight");
        assert!(named, "{wrong}: {error}");
    }
    let error = refused(&bytes[..bytes.len() - 40]);
    assert!(matches!(&error, LoadError::Truncated { what, .. } if what.contains("output.weight")), "{error}");
}

#[test]
fn impossible_shapes_and_types_are_refused() {
    let bytes = bytes_of(&small());
    let (dims, ty, _) = entry(&bytes, "blk.0.attn_q.weight");
    for n in [0u32, 5, u32::MAX] {
        let error = refused(&patched(dims, &n.to_le_bytes()));
        assert!(matches!(error, LoadError::Malformed { .. }), "{n} dimensions: {error}");
    }
    for d in [0, u64::MAX, 1 << 61] {
        let error = refused(&patched(dims + 4, &d.to_le_bytes()));
        assert!(matches!(error, LoadError::TensorLayout { .. }), "a dimension of {d}: {error}");
    }
    for id in [4u32, 5, 9, 24, 31, 99, u32::MAX] {
        let error = refused(&patched(ty, &id.to_le_bytes()));
        assert!(matches!(error, LoadError::TensorType { id: found, .. } if found == id), "type {id}: {error}");
    }
    // 32 columns are no whole block of 256.
    let error = refused(&patched(ty, &(TensorType::Q4_K as u32).to_le_bytes()));
    assert!(matches!(error, LoadError::TensorLayout { .. }), "{error}");
}

#[test]
fn alignments_are_powers_of_two() {
    for alignment in [0, 1, 4, 33, 48, 1 << 17] {
        let error = refused(&with("general.alignment", &Value::Unsigned(alignment)));
        assert!(matches!(&error, LoadError::BadKey { key, .. } if key == "general.alignment"), "{alignment}: {error}");
    }
    load(&with("general.alignment", &Value::Unsigned(32))).unwrap();
}

#[test]
fn bad_hyperparameters_name_their_key() {
    let cases = [
        ("llama.block_count", Value::Unsigned(0)),
        ("llama.block_count", Value::Unsigned(1 << 20)),
        ("llama.block_count", Value::Signed(-1)),
        ("llama.block_count", Value::String("one".into())),
        ("llama.embedding_length", Value::Unsigned(u64::from(u32::MAX))),
        ("llama.feed_forward_length", Value::Unsigned(0)),
        ("llama.attention.head_count", Value::Unsigned(0)),
        ("llama.attention.head_count_kv", Value::Unsigned(3)),
        ("llama.attention.head_count_kv", Value::Unsigned(0)),
        ("llama.attention.key_length", Value::Unsigned(15)),
        ("llama.attention.layer_norm_rms_epsilon", Value::Float(f64::NAN)),
        ("llama.context_length", Value::Unsigned(1 << 30)),
        ("llama.rope.dimension_count", Value::Unsigned(1 << 20)),
        ("llama.rope.freq_base", Value::Float(-5.0)),
        ("llama.rope.scaling.type", Value::String("yarn".into())),
    ];
    for (key, value) in cases {
        let error = refused(&with(key, &value));
        assert!(matches!(&error, LoadError::BadKey { key: found, .. } if found == key), "{key} = {value:?}: {error}");
    }
    let error = refused(&with("general.architecture", &Value::String("mamba".into())));
    assert!(matches!(&error, LoadError::Architecture(name) if name == "mamba"), "{error}");
}

#[test]
fn what_is_missing_or_of_another_shape_is_named() {
    let full = bytes_of(&small());
    let file = on_disk(&full);
    let old = Gguf::open(&file.path).unwrap();
    let rebuild = |skip: &str, double: &str| {
        let mut file = GgufWriter::new("llama");
        for key in old.metadata().keys().into_iter().filter(|k| *k != "general.architecture" && *k != skip) {
            file.set(key, old.metadata().get(key).unwrap());
        }
        for t in old.tensors().into_iter().filter(|t| t.name != skip) {
            let mut dims = t.dims.clone();
            *dims.last_mut().unwrap() *= if t.name == double { 2 } else { 1 };
            file.tensor(&t.name, &dims, t.ty);
        }
        bytes_of(&file)
    };
    for t in old.tensors() {
        let error = refused(&rebuild("", &t.name));
        assert!(
            matches!(&error, LoadError::Shape { tensor, .. } if *tensor == t.name),
            "{} twice as long: {error}",
            t.name
        );
        // Without an output matrix the embeddings serve.
        if t.name != "output.weight" {
            let error = refused(&rebuild(&t.name, ""));
            assert!(matches!(&error, LoadError::MissingTensor(name) if *name == t.name), "{error}");
        }
    }
    let optional = ["tokenizer.ggml.token_type", "tokenizer.ggml.eos_token_id", "llama.attention.head_count_kv"];
    for key in old.metadata().keys().into_iter().filter(|k| !optional.contains(k) && !k.starts_with("general")) {
        let error = refused(&rebuild(key, ""));
        let named = match &error {
            LoadError::MissingKey(name) => name == key,
            LoadError::BadKey { key: name, .. } => name == key,
            _ => false,
        };
        assert!(named, "without {key}: {error}");
    }
}

#[test]
fn broken_tokenizers_are_refused() {
    let cases = [
        ("tokenizer.ggml.model", Value::String("magic".into())),
        ("tokenizer.ggml.pre", Value::String("unheard-of".into())),
        ("tokenizer.ggml.merges", strings(&["t h", "nospace"])),
        ("tokenizer.ggml.merges", strings(&["t zz"])),
        ("tokenizer.ggml.eos_token_id", Value::Unsigned(VOCAB)),
    ];
    for (key, value) in cases {
        let error = refused(&with(key, &value));
        assert!(matches!(error, LoadError::Tokenizer(_)), "{key} = {value:?}: {error}");
    }
    let wrong = [
        ("tokenizer.ggml.tokens", Value::Unsigned(7)),
        ("tokenizer.ggml.merges", Value::Unsigned(7)),
        ("tokenizer.ggml.token_type", Value::Integers(vec![1; 3])),
    ];
    for (key, value) in wrong {
        let error = refused(&with(key, &value));
        assert!(matches!(&error, LoadError::BadKey { key: found, .. } if found == key), "{key}: {error}");
    }
}

/// A small generator, so that a failure can be repeated from its seed.
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

/// Whatever the bytes, opening ends with a model or an error. Mutations favour the header, where everything is decided.
#[test]
fn random_damage_never_panics() {
    const CASES: u64 = 1500;
    let whole = bytes_of(&small());
    let header = whole.len() - small_data_bytes(&whole);
    let mut loaded = 0;
    for seed in 1..=CASES {
        let mut rng = Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut bytes = whole.clone();
        for _ in 0..=rng.below(4) {
            let at = if rng.below(8) == 0 { rng.below(bytes.len()) } else { rng.below(header.min(bytes.len())) };
            match rng.below(6) {
                0 => bytes[at] ^= 1 << rng.below(8),
                1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][rng.below(5)],
                2 => {
                    let n = 8.min(bytes.len() - at);
                    let value = [0u64, 1, u64::MAX, 1 << 31, 1 << 32, 1 << 62, 255][rng.below(7)];
                    bytes[at..at + n].copy_from_slice(&value.to_le_bytes()[..n]);
                }
                3 => bytes.truncate(at.max(1)),
                4 => drop(bytes.drain(at..(at + 1 + rng.below(16)).min(bytes.len() - 1).max(at))),
                _ => {
                    let from = rng.below(bytes.len());
                    let n = (1 + rng.below(64)).min(bytes.len() - from.max(at));
                    bytes.copy_within(from..from + n, at);
                }
            }
        }
        match catch_unwind(|| load_and_run(&bytes)) {
            Ok(result) => loaded += usize::from(result.is_ok()),
            Err(_) => panic!("seed {seed} panicked"),
        }
    }
    assert!(loaded > 0 && loaded < CASES as usize, "{loaded} of {CASES} loaded: mutations do not bite, or only bite");
}
