use super::super::charsmap::tests::look_up;
use super::*;
use crate::gguf::Gguf;

const TOKENS: [&str; 6] = ["<s>", "<pad>", "</s>", "<unk>", "▁a", "<mask>"];

/// A file of one layer, its parts as the format has them. Data is 0, 1, 2, ... byte by byte, tensor after tensor.
#[derive(Clone)]
struct Parts {
    header: Vec<u32>,
    pieces: u32,
    text: Vec<u8>,
    rules: Vec<(u32, Vec<u32>)>,
    tensors: Vec<(String, u8, u32)>,
}

impl Default for Parts {
    fn default() -> Self {
        let eps = 1e-12f32.to_bits();
        let header = vec![1, 32, 1, 2, 64, 6, 8, 2, eps, 32];
        let encoder = Encoder {
            width: 32,
            layers: 1,
            heads: 2,
            ffn: 64,
            vocab: 6,
            context: 8,
            token_types: 2,
            eps: 1e-12,
            pooling: 1,
        };
        let tensors = tensors(&encoder).into_iter().map(|(_, source, dims)| {
            let packed = source == "emb.word" || (source.ends_with(".w") && dims.len() == 2);
            (source, u8::from(packed), dims.iter().product::<u64>() as u32)
        });
        Self {
            header,
            pieces: 6,
            text: TOKENS.concat().into_bytes(),
            rules: vec![(9, vec![32]), (0x2460, vec![0x31]), (7, vec![])],
            tensors: tensors.collect(),
        }
    }
}

impl Parts {
    fn bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        let words = |out: &mut Vec<u8>, words: &[u32]| out.extend(words.iter().flat_map(|v| v.to_le_bytes()));
        words(&mut out, &self.header);
        words(&mut out, &[self.pieces, 0, 2, 1, 3]);
        out.extend((self.text.len() as u64).to_le_bytes());
        let mut end = 0;
        words(&mut out, &[0]);
        for token in TOKENS {
            end += token.len() as u32;
            words(&mut out, &[end]);
        }
        words(&mut out, &(0..6).map(|i| (-(i as f32)).to_bits()).collect::<Vec<_>>());
        out.extend_from_slice(&self.text);
        let mut rules = Vec::new();
        for (from, to) in &self.rules {
            words(&mut rules, &[*from]);
            rules.push(to.len() as u8);
            words(&mut rules, to);
        }
        words(&mut out, &[self.rules.len() as u32, rules.len() as u32]);
        out.extend_from_slice(&rules);
        words(&mut out, &[self.tensors.len() as u32]);
        let size = |ty: u8, n: u32| if ty == 0 { n as usize * 4 } else { n as usize / 32 * 18 };
        let mut at = out.len() + self.tensors.iter().map(|(name, _, _)| 2 + name.len() + 21).sum::<usize>();
        for (name, ty, n) in &self.tensors {
            out.extend((name.len() as u16).to_le_bytes());
            out.extend_from_slice(name.as_bytes());
            out.push(*ty);
            words(&mut out, &[*n]);
            out.extend((at as u64).to_le_bytes());
            out.extend((size(*ty, *n) as u64).to_le_bytes());
            at += size(*ty, *n);
        }
        let data = at - out.len();
        out.extend((0..data).map(|i| i as u8));
        out
    }
}

fn convert(bytes: &[u8]) -> Result<(tempfile::TempDir, Gguf), ImportError> {
    let folder = tempfile::tempdir().unwrap();
    let (source, path) = (folder.path().join("e5.bin"), folder.path().join("e5.gguf"));
    std::fs::write(&source, bytes).unwrap();
    import(&source, &ModelCard::default(), &mut std::fs::File::create(&path).unwrap())?;
    let gguf = Gguf::open(&path).unwrap();
    Ok((folder, gguf))
}

#[test]
fn blocks_are_copied_bit_for_bit() {
    let source = Parts::default();
    let bytes = source.bytes();
    let (_folder, gguf) = convert(&bytes).unwrap();
    let mut at = 0;
    let sizes: usize = gguf.tensors().iter().map(|t| t.bytes as usize).sum();
    let data = &bytes[bytes.len() - sizes..];
    for tensor in gguf.tensors() {
        let n = tensor.bytes as usize;
        assert!(gguf.data(tensor) == &data[at..at + n], "{}", tensor.name);
        at += n;
    }
    assert_eq!(gguf.tensor("token_embd.weight").unwrap().ty, TensorType::Q4_0);
    assert_eq!(gguf.tensor("blk.0.ffn_down.weight").unwrap().dims, [64, 32]);
    assert_eq!(gguf.tensor("blk.0.ffn_up.bias").unwrap().dims, [64]);
}

#[test]
fn vocabulary_rules_and_prefixes_are_carried_over() {
    let (_folder, gguf) = convert(&Parts::default().bytes()).unwrap();
    let m = gguf.metadata();
    assert_eq!(m.strings("tokenizer.ggml.tokens").unwrap().unwrap(), TOKENS);
    assert_eq!(m.floats("tokenizer.ggml.scores").unwrap().unwrap(), [-0.0, -1.0, -2.0, -3.0, -4.0, -5.0]);
    assert_eq!(m.integers("tokenizer.ggml.token_type").unwrap().unwrap(), [3, 3, 3, 2, 1, 3]);
    assert_eq!(m.need_str("satchel.embed.query_prefix").unwrap(), "query: ");
    assert_eq!(m.need_str("satchel.embed.passage_prefix").unwrap(), "passage: ");
    let map: Vec<u8> =
        m.integers("tokenizer.ggml.precompiled_charsmap").unwrap().unwrap().iter().map(|v| *v as u8).collect();
    let normal = |c| look_up(&map, c);
    assert_eq!([normal('\t'), normal('①'), normal('\u{7}')], [" ", "1", ""].map(|s| Some(s.to_owned())));
    assert_eq!(normal('a'), None);
    let config = crate::Config::from_gguf(&gguf).unwrap();
    assert_eq!((config.width, config.heads, config.vocab, config.context), (32, 2, 6, 8));
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let bytes = Parts::default().bytes();
    // The header in single bytes, the data more coarsely.
    for n in (4..1400).chain((1400..bytes.len()).step_by(97)) {
        let error = convert(&bytes[..n]).unwrap_err();
        assert!(matches!(error, ImportError::Damaged { .. }), "{n} bytes: {error}");
    }
}

#[test]
fn lies_are_refused_with_the_reason() {
    type Lie = fn(&mut Parts);
    let cases: [(Lie, &str); 11] = [
        (|p| p.header[0] = 2, "version 2"),
        (|p| p.header[1] = u32::MAX, "width"),
        (|p| p.header[2] = 0, "layers"),
        (|p| p.header[3] = 5, "heads do not divide"),
        (|p| p.header[8] = f32::NAN.to_bits(), "epsilon"),
        (|p| p.header[9] = 64, "blocks of 64"),
        (|p| p.pieces = 7, "7 pieces for 6"),
        (|p| p.text[0] = 0xff, "is no text"),
        (|p| p.rules[0].0 = 0xd800, "character 0xd800"),
        (|p| p.tensors[0].1 = 9, "unknown type 9"),
        (|p| p.tensors[0].0 = "other".into(), "emb.word is missing"),
    ];
    for (lie, reason) in cases {
        let mut parts = Parts::default();
        lie(&mut parts);
        let error = convert(&parts.bytes()).unwrap_err().to_string();
        assert!(error.contains(reason), "{error:?} does not say {reason:?}");
    }
}

#[test]
fn any_single_damaged_byte_of_the_header_is_survived() {
    let bytes = Parts::default().bytes();
    for at in 0..1400 {
        for value in [0, 0x7f, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] = value;
            // An error or another model, never a panic.
            let _ = convert(&damaged);
        }
    }
}
