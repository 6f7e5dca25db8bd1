//! Our models against those of the `tokenizers` crate, on small vocabularies and random texts; and files that lie.

use tokenizers::models::bpe::BPE;
use tokenizers::models::unigram::Unigram as CrateUnigram;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::metaspace::{Metaspace, PrependScheme};
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{PreTokenizerWrapper, SplitDelimiterBehavior};

use super::*;
use crate::gguf::Value;

/// A small generator (SplitMix64), so that failures repeat.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }

    fn text(&mut self, alphabet: &[&str], longest: usize) -> String {
        (0..self.below(longest)).map(|_| alphabet[self.below(alphabet.len())]).collect()
    }
}

/// The spelling of a byte in byte-level vocabularies, by the definition: what is printable stands for itself.
fn spelled(byte: u8) -> char {
    let printable = |b: u8| matches!(b, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    match printable(byte) {
        true => char::from(byte),
        false => char::from_u32(256 + (0..byte).filter(|b| !printable(*b)).count() as u32).unwrap(),
    }
}

fn strings(texts: &[&str]) -> Value {
    Value::Strings(texts.iter().map(|t| t.to_string()).collect())
}

/// A byte-level vocabulary with merges that overlap in many ways, and a control token at the end.
fn bpe_file(pre: &str) -> Metadata {
    let mut tokens: Vec<String> = (0..=255).map(|b| spelled(b).to_string()).collect();
    let merges = [
        "a b",
        "b a",
        "ab a",
        "a ba",
        "ab ab",
        "b c",
        "c a",
        "ab c",
        "Ġ a",
        "Ġa b",
        "Ġ Ġ",
        "ĠĠ ĠĠ",
        "Ċ Ċ",
        "1 2",
        "Ã ©",
        "Ġ Ã©",
        "' s",
        "a a",
        "aa aa",
        "aaaa aaaa",
        "b b",
        "ba b",
    ];
    for merge in merges {
        let token = merge.replace(' ', "");
        if !tokens.contains(&token) {
            tokens.push(token);
        }
    }
    let control = tokens.len();
    tokens.push("<|im_end|>".into());
    let mut m = Metadata::default();
    let mut types = vec![1; tokens.len()];
    types[control] = 3;
    m.set("tokenizer.ggml.model", Value::String("gpt2".into()));
    m.set("tokenizer.ggml.pre", Value::String(pre.into()));
    m.set("tokenizer.ggml.merges", strings(&merges));
    m.set("tokenizer.ggml.token_type", Value::Integers(types));
    m.set("tokenizer.ggml.tokens", Value::Strings(tokens));
    m.set("tokenizer.ggml.eos_token_id", Value::Unsigned(control as u64));
    m
}

/// The same in the crate's model.
fn crate_bpe(m: &Metadata, patterns: &[&str]) -> tokenizers::Tokenizer {
    let tokens = m.strings("tokenizer.ggml.tokens").unwrap().unwrap();
    let vocab: ahash::AHashMap<String, u32> = (0..).zip(tokens).map(|(id, t)| (t.clone(), id)).collect();
    let merges = m.strings("tokenizer.ggml.merges").unwrap().unwrap();
    let pairs = merges.iter().map(|r| r.split_once(' ').map(|(a, b)| (a.into(), b.into())).unwrap()).collect();
    let mut theirs = tokenizers::Tokenizer::new(BPE::builder().vocab_and_merges(vocab, pairs).build().unwrap());
    let mut steps: Vec<PreTokenizerWrapper> = Vec::new();
    for pattern in patterns {
        let pattern = SplitPattern::Regex(pattern.to_string());
        steps.push(Split::new(pattern, SplitDelimiterBehavior::Isolated, false).unwrap().into());
    }
    steps.push(ByteLevel::new(false, false, false).into());
    theirs.with_pre_tokenizer(Some(Sequence::new(steps)));
    theirs
}

#[test]
fn bpe_equals_the_crates_on_random_texts() {
    let alphabet = [
        "a",
        "b",
        "c",
        "ab",
        "aa",
        " ",
        "  ",
        "\n",
        "\r\n",
        "\t",
        "1",
        "12",
        "123",
        "'s",
        "'S",
        "é",
        "E\u{301}",
        "漢",
        "字",
        "😀",
        ".",
        ",!",
        "<|im_end|>",
        "\u{3000}",
        "_",
        "x1y",
        "\u{85}",
        "İ",
    ];
    for pre in ["gpt-2", "smollm", "qwen2", "dbrx", "qwen35"] {
        let m = bpe_file(pre);
        let ours = Tokenizer::from_gguf(&m).unwrap();
        let theirs = crate_bpe(&m, split::patterns(pre).unwrap().0);
        let mut random = Random(1);
        for _ in 0..3000 {
            let text = random.text(&alphabet, 24);
            let expected = theirs.encode_fast(text.as_str(), false).unwrap();
            assert_eq!(ours.encode(&text, Special::Text).unwrap(), expected.get_ids(), "{pre}: {text:?}");
            assert_eq!(ours.decode(expected.get_ids()), text);
        }
    }
}

/// A Unigram vocabulary with ties, unknown characters and a control token.
fn unigram_file() -> Metadata {
    let tokens = [
        "<s>", "</s>", "<unk>", "▁", "a", "b", "ab", "▁a", "▁ab", "aba", "ba", "▁b", "bab", "é", "漢字", "c", "▁c",
        "1", "12", "<", ">", "s",
    ];
    let scores: Vec<f32> =
        (0..tokens.len()).map(|i| if i < 3 { 0.0 } else { -1.5 - (i * 7 % 11) as f32 * 0.37 }).collect();
    let mut types = vec![1; tokens.len()];
    types[..3].copy_from_slice(&[3, 3, 2]);
    let mut m = Metadata::default();
    m.set("tokenizer.ggml.model", Value::String("t5".into()));
    m.set("tokenizer.ggml.tokens", strings(&tokens));
    m.set("tokenizer.ggml.scores", Value::Floats(scores));
    m.set("tokenizer.ggml.token_type", Value::Integers(types));
    m.set("tokenizer.ggml.bos_token_id", Value::Unsigned(0));
    m.set("tokenizer.ggml.eos_token_id", Value::Unsigned(1));
    m.set("tokenizer.ggml.unknown_token_id", Value::Unsigned(2));
    m.set("tokenizer.ggml.add_bos_token", Value::Bool(true));
    m
}

#[test]
fn unigram_equals_the_crates_on_random_texts() {
    let m = unigram_file();
    let ours = Tokenizer::from_gguf(&m).unwrap();
    let tokens = m.strings("tokenizer.ggml.tokens").unwrap().unwrap();
    let scores = m.floats("tokenizer.ggml.scores").unwrap().unwrap();
    // Control tokens keep their places under names that no text here has.
    let vocab = (0..)
        .zip(tokens.iter().zip(scores))
        .map(|(id, (t, s))| (if id < 2 { format!("\u{0}{id}") } else { t.clone() }, f64::from(*s)));
    let mut theirs = tokenizers::Tokenizer::new(CrateUnigram::from(vocab.collect(), Some(2), false).unwrap());
    theirs.with_pre_tokenizer(Some(Metaspace::new('\u{2581}', PrependScheme::Always, true)));
    let alphabet = ["a", "b", "ab", "c", " ", "é", "漢", "字", "漢字", "1", "12", "z", "😀", "q", "<s>", "</s>"];
    let mut random = Random(2);
    for _ in 0..5000 {
        let text = random.text(&alphabet, 24);
        // One space between words and none at the ends, which is what our normalisation makes.
        let text = text.split(' ').filter(|w| !w.is_empty()).collect::<Vec<_>>().join(" ");
        let expected = theirs.encode_fast(text.as_str(), false).unwrap();
        assert_eq!(ours.encode(&text, Special::Text).unwrap(), expected.get_ids(), "{text:?}");
    }
    assert_eq!(ours.encode_framed("a", Special::Text).unwrap(), [0, 7, 1]);
    assert_eq!(ours.encode("  a \n  b\u{3000}", Special::Text).unwrap(), [7, 11], "blanks collapse");
    assert_eq!(ours.encode("<s>", Special::Template).unwrap(), [0]);
}

/// A SentencePiece vocabulary with byte tokens.
fn spm_file(space_prefix: bool) -> Metadata {
    let mut tokens: Vec<String> = ["<unk>", "<s>", "</s>"].map(String::from).into();
    tokens.extend((0..=255).map(|b| format!("<0x{b:02X}>")));
    let mut types = vec![2, 3, 3];
    types.extend([6; 256]);
    let mut scores = vec![0.0; tokens.len()];
    for (i, token) in ["▁", "a", "b", "ab", "▁a", "▁ab", "<", "s", ">", "<s", "s>"].iter().enumerate() {
        tokens.push(token.to_string());
        types.push(1);
        scores.push(-(i as f32));
    }
    let mut m = Metadata::default();
    m.set("tokenizer.ggml.model", Value::String("llama".into()));
    m.set("tokenizer.ggml.tokens", Value::Strings(tokens));
    m.set("tokenizer.ggml.scores", Value::Floats(scores));
    m.set("tokenizer.ggml.token_type", Value::Integers(types));
    m.set("tokenizer.ggml.bos_token_id", Value::Unsigned(1));
    m.set("tokenizer.ggml.eos_token_id", Value::Unsigned(2));
    m.set("tokenizer.ggml.add_space_prefix", Value::Bool(space_prefix));
    m
}

#[test]
fn sentence_piece_merges_by_score_and_falls_back_to_bytes() {
    let t = Tokenizer::from_gguf(&spm_file(false)).unwrap();
    let names = |text, special| -> Vec<String> {
        t.encode(text, special).unwrap().iter().map(|id| t.token_name(*id).unwrap()).collect()
    };
    // "ab" scores higher than "▁a", so it is merged first, and then "▁ab".
    assert_eq!(names("ab ab", Special::Text), ["ab", " ab"]);
    assert_eq!(t.encode("é", Special::Text).unwrap(), [3 + 0xc3, 3 + 0xa9]);
    assert_eq!(t.decode(&[3 + 0xc3, 3 + 0xa9]), "é");
    // "<s>" would be reachable by merging; it is no text.
    assert_eq!(names("<s>", Special::Text), ["<s", ">"]);
    assert_eq!(names("<s>a", Special::Template), ["<s>", "a"]);
    assert_eq!(names("<0x41>", Special::Text).len(), 6, "a byte token's name is text");
    assert_eq!(t.encode_framed("a", Special::Text).unwrap()[0], 1);
    let t = Tokenizer::from_gguf(&spm_file(true)).unwrap();
    assert_eq!(t.decode(&t.encode("ab", Special::Text).unwrap()), " ab");
}

#[test]
fn the_ends_of_turns_are_control_tokens_whatever_the_file_says() {
    let mut m = bpe_file("qwen2");
    let types = vec![1; m.strings("tokenizer.ggml.tokens").unwrap().unwrap().len()];
    let control = types.len() as u32 - 1;
    m.set("tokenizer.ggml.token_type", Value::Integers(types));
    let t = Tokenizer::from_gguf(&m).unwrap();
    assert!(t.is_control(control) && t.is_end(control));
    assert!(!t.encode("a<|im_end|>", Special::Text).unwrap().contains(&control));
    assert_eq!(t.token_bytes(control), b"");
    assert_eq!(t.token_bytes(u32::MAX), b"");
}

#[test]
fn files_that_lie_are_refused_with_the_reason() {
    type Change = fn(&mut Metadata);
    let bpe: [(Change, &str); 10] = [
        (|m| m.set("tokenizer.ggml.model", Value::String("rwkv".into())), "\"rwkv\" is not supported"),
        (|m| m.set("tokenizer.ggml.pre", Value::String("default".into())), "\"default\" is not known"),
        (|m| m.set("tokenizer.ggml.tokens", Value::Strings(vec![])), "0 tokens"),
        (|m| m.set("tokenizer.ggml.token_type", Value::Integers(vec![1])), "1 entries"),
        (|m| m.set("tokenizer.ggml.merges", strings(&["ab"])), "is no pair"),
        (|m| m.set("tokenizer.ggml.merges", strings(&["a zz"])), "names a token"),
        (|m| m.set("tokenizer.ggml.merges", strings(&["a b", "a b"])), "repeats another"),
        (|m| m.set("tokenizer.ggml.merges", strings(&[])), "no merge rules"),
        (|m| m.set("tokenizer.ggml.eos_token_id", Value::Unsigned(99_999)), "99999 is outside the vocabulary"),
        (|m| m.set("tokenizer.ggml.add_bos_token", Value::Bool(true)), "does not name"),
    ];
    for (change, reason) in bpe {
        let mut m = bpe_file("qwen2");
        change(&mut m);
        let error = Tokenizer::from_gguf(&m).unwrap_err().to_string();
        assert!(error.contains(reason), "{error:?} does not say {reason:?}");
    }
    let unigram: [(Change, &str); 4] = [
        (|m| m.set("tokenizer.ggml.scores", Value::Floats(vec![0.0])), "1 entries"),
        (|m| m.set("tokenizer.ggml.scores", Value::Floats(vec![f32::NAN; 22])), "score NaN"),
        (|m| m.set("tokenizer.ggml.precompiled_charsmap", Value::Integers(vec![300])), "no byte"),
        (|m| m.set("tokenizer.ggml.precompiled_charsmap", Value::Integers(vec![9, 0, 0, 0])), "is not a trie"),
    ];
    for (change, reason) in unigram {
        let mut m = unigram_file();
        change(&mut m);
        let error = Tokenizer::from_gguf(&m).unwrap_err().to_string();
        assert!(error.contains(reason), "{error:?} does not say {reason:?}");
    }
}

#[test]
fn a_text_longer_than_the_bound_is_an_error() {
    let t = Tokenizer::from_gguf(&spm_file(false)).unwrap();
    assert!(t.encode(&"a".repeat(MAX_TEXT_BYTES + 1), Special::Text).is_err());
}

/// Word pieces in a JSON, with the names of special tokens in the text.
#[test]
fn a_kept_json_frames_texts_and_never_reads_special_tokens_from_them() {
    let vocab = serde_json::json!({"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[": 4, "]": 5, "sep": 6, "play": 7, "##ing": 8});
    let added: Vec<_> = (0..4).map(|id| {
        let content = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"][id];
        serde_json::json!({"id": id, "content": content, "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false})
    }).collect();
    let json = serde_json::json!({
        "version": "1.0", "truncation": {"max_length": 2, "strategy": "LongestFirst", "stride": 0, "direction": "Right"},
        "padding": {"strategy": {"Fixed": 8}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"},
        "added_tokens": added,
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
        "decoder": null,
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": vocab},
    });
    let mut m = Metadata::default();
    m.set("tokenizer.huggingface.json", Value::String(json.to_string()));
    let t = Tokenizer::from_gguf(&m).unwrap();
    assert_eq!(t.encode_framed("Playing [SEP] zzz", Special::Text).unwrap(), [2, 7, 8, 4, 6, 5, 1, 3]);
    assert!(t.is_control(3) && t.vocab_len() == 9);
    for broken in
        ["", "[]", "{}", "{\"model\": {\"type\": \"Unigram\"}}", "{\"model\": {\"type\": \"WordPiece\", \"vocab\": 3}}"]
    {
        m.set("tokenizer.huggingface.json", Value::String(broken.into()));
        assert!(Tokenizer::from_gguf(&m).is_err(), "{broken}");
    }
}
