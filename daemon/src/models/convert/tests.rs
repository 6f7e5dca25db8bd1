use std::fs;

use super::*;
use crate::models::testing;

fn store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path().join("models"));
    (folder, store)
}

#[test]
fn a_file_that_the_catalogue_knows_gets_its_name_and_licence() {
    let (folder, store) = store();
    let path = folder.path().join("whatever it was called.gguf");
    fs::copy(testing::model("smollm2-135m-instruct"), &path).unwrap();
    let row = import_path(&store, &path).unwrap();
    assert_eq!((row.name.as_str(), row.licence.as_deref()), ("smollm2-135m-instruct", Some("Apache-2.0")));
    assert_eq!(row.record.unwrap().source, path.to_str().unwrap());
    assert!(!store.partial("smollm2-135m-instruct").exists());
    assert!(path.is_file(), "the person's own file stays");
}

#[test]
fn another_file_gets_its_own_name_and_its_own_licence() {
    let (folder, store) = store();
    let path = folder.path().join("My Model (v2).gguf");
    fs::copy(testing::model("all-minilm-l6-v2"), &path).unwrap();
    let row = import_path(&store, &path).unwrap();
    assert_eq!((row.name.as_str(), row.licence.as_deref()), ("my-model--v2", Some("Apache-2.0")));
    assert_eq!(row.role.unwrap().name(), "embedder");
    assert_eq!(row.record.unwrap().bytes, fs::metadata(&path).unwrap().len());
    // The catalogue's names stand for its own files.
    let path = folder.path().join("gemma-3-270m.gguf");
    fs::copy(testing::model("all-minilm-l6-v2"), &path).unwrap();
    assert_eq!(import_path(&store, &path).unwrap().name, "gemma-3-270m-imported");
}

#[test]
fn what_is_no_model_is_refused_and_leaves_nothing() {
    let (folder, store) = store();
    let (text, gguf, nothing) = (folder.path().join("a.txt"), folder.path().join("b.gguf"), folder.path().join("c"));
    fs::write(&text, "text").unwrap();
    fs::write(&gguf, "GGUF\x03\0\0\0").unwrap();
    for path in [&text, &nothing] {
        assert!(matches!(import_path(&store, path), Err(ModelError::Import(_))), "{path:?}");
    }
    assert!(matches!(import_path(&store, &gguf), Err(ModelError::Invalid { .. })));
    assert!(!store.partial("b").exists() && !store.is_installed("b"));
}

#[test]
fn a_stopped_conversion_says_that_it_was_stopped() {
    let (folder, _) = store();
    let to = folder.path().join("out.gguf");
    let source = folder.path().join("source");
    fs::create_dir(&source).unwrap();
    write_tiny(&source);
    let cancelled = || ModelError::Cancelled { name: "m".into() };
    let card = ModelCard::default();
    let stopped = to_gguf(&source, &card, &to, |_| Err(cancelled()));
    assert!(matches!(stopped, Err(ModelError::Cancelled { .. })), "{stopped:?}");
    to_gguf(&source, &card, &to, |_| Ok(())).unwrap();
    super::super::store::validate(&to).unwrap();
}

/// A folder with a one-layer encoder of width 32.
fn write_tiny(folder: &Path) {
    let config = serde_json::json!({
        "model_type": "bert", "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 32, "vocab_size": 4, "max_position_embeddings": 8, "type_vocab_size": 1,
    });
    let vocab = serde_json::json!({"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "a": 3});
    let tokenizer = serde_json::json!({"model": {"type": "WordPiece", "vocab": vocab}});
    fs::write(folder.join("config.json"), config.to_string()).unwrap();
    fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    let mut shapes: Vec<(String, Vec<usize>)> = vec![
        ("embeddings.word_embeddings.weight".into(), vec![4, 32]),
        ("embeddings.position_embeddings.weight".into(), vec![8, 32]),
        ("embeddings.token_type_embeddings.weight".into(), vec![1, 32]),
        ("embeddings.LayerNorm.weight".into(), vec![32]),
        ("embeddings.LayerNorm.bias".into(), vec![32]),
    ];
    let matrices = ["attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"];
    for part in matrices.iter().chain(&["intermediate.dense", "output.dense"]) {
        shapes.push((format!("encoder.layer.0.{part}.weight"), vec![32, 32]));
        shapes.push((format!("encoder.layer.0.{part}.bias"), vec![32]));
    }
    for part in ["attention.output.LayerNorm", "output.LayerNorm"] {
        shapes.push((format!("encoder.layer.0.{part}.weight"), vec![32]));
        shapes.push((format!("encoder.layer.0.{part}.bias"), vec![32]));
    }
    let (mut header, mut at) = (serde_json::Map::new(), 0);
    for (name, shape) in shapes {
        let end = at + 4 * shape.iter().product::<usize>();
        header.insert(name, serde_json::json!({"dtype": "F32", "shape": shape, "data_offsets": [at, end]}));
        at = end;
    }
    let header = serde_json::Value::Object(header).to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    file.extend((0..at / 4).flat_map(|i| ((i % 17) as f32 / 17.0).to_le_bytes()));
    fs::write(folder.join("model.safetensors"), file).unwrap();
}
