use super::super::safetensors::tests::container;
use super::*;
use crate::gguf::Gguf;

const WIDTH: u64 = 32;
const VOCAB: u64 = 5;

/// A folder with a one-layer encoder whose weights are all different.
fn folder(model_type: &str, reserved: u64) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let config = serde_json::json!({
        "model_type": model_type, "hidden_size": WIDTH, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 64, "vocab_size": VOCAB, "max_position_embeddings": 8 + reserved, "type_vocab_size": 2,
        "layer_norm_eps": 1e-12, "hidden_act": "gelu", "pad_token_id": if reserved == 0 { 0 } else { reserved - 1 },
    });
    write(&folder, "config.json", config.to_string().as_bytes());
    let vocab = serde_json::json!({"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "a": 4});
    let tokenizer = serde_json::json!({"model": {"type": "WordPiece", "vocab": vocab}});
    write(&folder, "tokenizer.json", tokenizer.to_string().as_bytes());
    write(&folder, "model.safetensors", &weights(reserved));
    folder
}

fn write(folder: &tempfile::TempDir, name: &str, bytes: &[u8]) {
    std::fs::write(folder.path().join(name), bytes).unwrap();
}

fn shape() -> Encoder {
    let (vocab, width) = (VOCAB, WIDTH);
    Encoder { width, layers: 1, heads: 2, ffn: 64, vocab, context: 8, token_types: 2, eps: 1e-12, pooling: 1 }
}

fn weights(reserved: u64) -> Vec<u8> {
    let mut header = serde_json::Map::new();
    let mut data = Vec::new();
    for (_, name, shape) in tensors(&shape(), reserved) {
        let n = shape.iter().product::<u64>();
        let from = data.len();
        let base = header.len() as f32;
        data.extend((0..n).flat_map(|i| (base + i as f32 / 1000.0).to_le_bytes()));
        header.insert(
            format!("bert.{name}"),
            serde_json::json!({"dtype": "F32", "shape": shape, "data_offsets": [from, data.len()]}),
        );
    }
    container(&Json::Object(header).to_string(), &data)
}

fn convert(folder: &tempfile::TempDir, card: &ModelCard) -> Result<(tempfile::TempDir, Gguf), ImportError> {
    let out = tempfile::tempdir().unwrap();
    let path = out.path().join("m.gguf");
    import(folder.path(), card, &mut std::fs::File::create(&path).unwrap())?;
    let gguf = Gguf::open(&path).unwrap();
    Ok((out, gguf))
}

fn floats(gguf: &Gguf, name: &str) -> Vec<f32> {
    let info = gguf.tensor(name).unwrap();
    let mut out = vec![0.0; info.dims.iter().product::<u64>() as usize];
    info.ty.dequantize(gguf.data(info), &mut out);
    out
}

#[test]
fn a_folder_becomes_a_file_that_the_engine_accepts() {
    let card = ModelCard { name: "tiny".into(), license: Some("MIT".into()), ..ModelCard::default() };
    let (_out, gguf) = convert(&folder("bert", 0), &card).unwrap();
    let config = crate::Config::from_gguf(&gguf).unwrap();
    assert_eq!((config.width, config.layers, config.heads, config.ffn, config.vocab), (32, 1, 2, 64, 5));
    assert_eq!((config.context, config.pooling, config.eps), (8, crate::Pooling::Mean, 1e-12));
    let m = gguf.metadata();
    assert_eq!(m.need_str("general.license").unwrap(), "MIT");
    assert_eq!(m.need_str("satchel.embed.query_prefix").unwrap(), "");
    assert!(m.need_str("tokenizer.huggingface.json").unwrap().contains("WordPiece"));
    for (i, (name, _, shape)) in tensors(&shape(), 0).into_iter().enumerate() {
        let ty = gguf.tensor(&name).unwrap().ty;
        let expected = if name.ends_with("bias") || shape.len() == 1 { TensorType::F32 } else { ty };
        assert_eq!(ty, expected, "{name}");
        let step = if ty == TensorType::Q8_0 { (i as f32 + 3.0) / 127.0 } else { 0.0 };
        for (j, value) in floats(&gguf, &name).into_iter().enumerate() {
            let exact = i as f32 + j as f32 / 1000.0;
            assert!((value - exact).abs() <= step, "{name}[{j}]: {value} for {exact}");
        }
    }
    assert_eq!(gguf.tensor("blk.0.ffn_down.weight").unwrap().ty, TensorType::Q8_0);
}

#[test]
fn positions_that_roberta_reserves_are_cut() {
    let (_out, gguf) = convert(&folder("xlm-roberta", 2), &ModelCard::default()).unwrap();
    assert_eq!(crate::Config::from_gguf(&gguf).unwrap().context, 8);
    let positions = floats(&gguf, "position_embd.weight");
    assert_eq!(positions.len() as u64, 8 * WIDTH);
    assert!((positions[0] - (1.0 + 0.064)).abs() < 1e-6, "{}", positions[0]);
}

#[test]
fn prefixes_and_pooling_come_from_the_folder() {
    let folder = folder("bert", 0);
    let prompts = r#"{"prompts": {"query": "query: ", "document": "passage: "}}"#;
    write(&folder, "config_sentence_transformers.json", prompts.as_bytes());
    std::fs::create_dir(folder.path().join("1_Pooling")).unwrap();
    let pooling = r#"{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}"#;
    write(&folder, "1_Pooling/config.json", pooling.as_bytes());
    let card = ModelCard { query_prefix: Some("q: ".into()), ..ModelCard::default() };
    let (_out, gguf) = convert(&folder, &card).unwrap();
    assert_eq!(crate::Config::from_gguf(&gguf).unwrap().pooling, crate::Pooling::Cls);
    assert_eq!(gguf.metadata().need_str("satchel.embed.query_prefix").unwrap(), "q: ");
    assert_eq!(gguf.metadata().need_str("satchel.embed.passage_prefix").unwrap(), "passage: ");
}

#[test]
fn what_does_not_fit_is_refused_with_the_reason() {
    let cases: [(&str, &[u8], &str); 7] = [
        ("config.json", b"{", "not valid JSON"),
        ("config.json", br#"{"model_type": "gpt2"}"#, "model_type"),
        ("config.json", br#"{"model_type": "bert", "hidden_act": "relu"}"#, "hidden_act"),
        ("config.json", br#"{"model_type": "bert"}"#, "hidden_size is missing"),
        ("model.safetensors", b"\x02\0\0\0\0\0\0\0{}", "word_embeddings"),
        ("tokenizer.json", b"{}", "tokenizer model"),
        ("tokenizer.json", b"\xff", "not valid JSON"),
    ];
    for (name, bytes, reason) in cases {
        let folder = folder("bert", 0);
        write(&folder, name, bytes);
        let error = convert(&folder, &ModelCard::default()).unwrap_err().to_string();
        assert!(error.contains(reason) && error.contains(name), "{error:?} does not say {reason:?}");
    }
    let folder = folder("bert", 0);
    let config = std::fs::read_to_string(folder.path().join("config.json")).unwrap();
    write(&folder, "config.json", config.replace("\"intermediate_size\":64", "\"intermediate_size\":96").as_bytes());
    let error = convert(&folder, &ModelCard::default()).unwrap_err().to_string();
    assert!(error.contains("expected [96, 32]"), "{error}");
}
