//! Every bound of the engine, with its reason.

/// Longest string a model file may carry: an imported multilingual encoder keeps its tokenizer as JSON, 17 MB for 250,000
/// tokens. A length is checked against the rest of the file too, so a lie costs nothing.
pub const MAX_STRING_BYTES: u64 = 1 << 25;
/// Most elements of a metadata array: the largest vocabularies have 262,144 tokens and 600,000 merges.
pub const MAX_ARRAY_LEN: u64 = 1 << 22;
/// Most key-value pairs of a header: real files have 20 to 60.
pub const MAX_KV: u64 = 4096;
/// Most tensors of a file: a 94-layer mixture-of-experts model has about 1,500.
pub const MAX_TENSORS: u64 = 1 << 16;
/// Longest tensor name in bytes (the reference reader refuses 64 and more).
pub const MAX_NAME_BYTES: usize = 63;
/// Dimensions of a tensor, as in the format.
pub const MAX_DIMS: u32 = 4;
/// Alignment may be any power of two up to a page group; larger values only serve to hide data.
pub const MAX_ALIGNMENT: u64 = 1 << 16;

/// Most layers that a model may declare (the deepest known has 126).
pub const MAX_LAYERS: u32 = 512;
/// Widest row of any matrix; keeps activation blocks and scratch sizes far from overflow.
pub const MAX_WIDTH: u32 = 1 << 18;
/// Most attention heads.
pub const MAX_HEADS: u32 = 1024;
/// Largest vocabulary.
pub const MAX_VOCAB: usize = 1 << 21;
/// Longest context that a session may be opened with, in tokens.
pub const MAX_CONTEXT: usize = 1 << 20;

/// Tokens computed in one prefill pass: large enough that decoding a weight panel is paid off,
/// small enough that the scratch of a 1.5B model stays near 40 MiB.
pub const PREFILL_BATCH: usize = 512;
/// Most worker threads: beyond this the barriers cost more than the work on any machine we target.
pub const MAX_THREADS: usize = 64;

const _: () = assert!(MAX_ALIGNMENT.is_power_of_two());
const _: () = assert!(PREFILL_BATCH.is_multiple_of(32), "attention tiles divide the batch");

/// Longest safetensors header: 200 bytes a tensor; that of a 100-layer model has 300 KB.
pub const MAX_SAFETENSORS_HEADER: u64 = 1 << 24;
/// Longest `config.json` and its neighbours: real ones have a few KB, those with thousands of labels some 100.
pub const MAX_CONFIG_JSON: u64 = 1 << 20;
/// Most normalisation rules of an imported tokenizer: 4,837 in XLM-RoBERTa's; Unicode has 17,000 compatibility forms.
pub const MAX_NORMALIZATION_RULES: u64 = 1 << 15;

/// Longest text to tokenize at once, in bytes: twenty times what the longest context holds; working space is some
/// 24 bytes for each.
pub const MAX_TEXT_BYTES: usize = 1 << 22;
/// Most steps to a free place in a hash table of the tokenizer: real vocabularies need some 30; a file made to
/// collide would take hours to load.
pub const MAX_PROBES: usize = 1024;
/// Longest token in bytes: real ones reach 512, runs of blanks.
pub const MAX_TOKEN_BYTES: usize = 4096;

/// Longest chat template: real ones have up to 20 KB.
pub const MAX_TEMPLATE_BYTES: usize = 1 << 18;
/// Steps that a chat template may take: real ones need some thousands for a long conversation.
pub const TEMPLATE_FUEL: u64 = 1_000_000;
/// Longest output of a chat template, contents not counted.
pub const MAX_RENDERED_BYTES: usize = 1 << 20;
