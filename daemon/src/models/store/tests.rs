use super::*;
use crate::models::testing;

fn store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path().join("models"));
    (folder, store)
}

/// Puts a real model into the store under a name.
fn put(store: &Store, model: &str, name: &str) {
    files::make_folder(store.folder()).unwrap();
    fs::copy(testing::model(model), store.path(name)).unwrap();
}

#[test]
fn an_empty_store_lists_the_catalogue_and_says_how_to_pull() {
    let (_folder, store) = store();
    let list = store.list().unwrap();
    assert_eq!(list.len(), CATALOGUE.len());
    assert!(list.iter().all(|row| row.path.is_none() && !row.in_use && row.bytes > 0));
    let error = store.resolve("gemma-3-270m").unwrap_err();
    assert!(matches!(error, ModelError::Missing { .. }));
    assert_eq!(error.hint().unwrap(), "satchel model pull gemma-3-270m");
    assert!(matches!(store.resolve("no-such-model"), Err(ModelError::Unknown { .. })));
    // Names never leave the folder.
    for name in ["../m", "/etc/passwd/x", ".hidden", "a/b", ""] {
        assert!(!is_name(name) && !store.is_installed(name), "{name}");
    }
}

#[test]
fn what_is_in_the_folder_is_found_by_name_and_what_is_elsewhere_by_path() {
    let (folder, store) = store();
    put(&store, "smollm2-135m-instruct", "mine");
    assert_eq!(store.resolve("mine").unwrap(), store.path("mine"));
    let elsewhere = folder.path().join("elsewhere.gguf");
    fs::rename(store.path("mine"), &elsewhere).unwrap();
    assert_eq!(store.resolve(elsewhere.to_str().unwrap()).unwrap(), elsewhere);
    put(&store, "smollm2-135m-instruct", "mine");
    fs::write(store.path("broken"), "GGUF").unwrap();
    let list = store.list().unwrap();
    let role = |name: &str| list.iter().find(|row| row.name == name).unwrap().role;
    assert_eq!((role("mine"), role("broken")), (Some(Role::Llm), None));
}

#[test]
fn the_chosen_model_is_used_whatever_the_memory() {
    let (folder, store) = store();
    put(&store, "smollm2-135m-instruct", "smollm2-135m-instruct");
    put(&store, "all-minilm-l6-v2", "mine");
    assert_eq!(store.choose("smollm2-135m-instruct").unwrap(), ("smollm2-135m-instruct".to_owned(), Role::Llm));
    assert_eq!(store.choose("mine").unwrap(), ("mine".to_owned(), Role::Embedder));
    assert_eq!(store.llm_to_use(Some(u64::MAX)).unwrap().name, "smollm2-135m-instruct");
    assert_eq!(store.embedder_to_use().unwrap().name, "mine");
    let list = store.list().unwrap();
    let in_use: Vec<&str> = list.iter().filter(|row| row.in_use).map(|row| row.name.as_str()).collect();
    assert_eq!(in_use, ["smollm2-135m-instruct", "mine"]);

    let elsewhere = folder.path().join("x.gguf");
    fs::rename(store.path("mine"), &elsewhere).unwrap();
    let (kept, role) = store.choose(elsewhere.to_str().unwrap()).unwrap();
    assert_eq!((Path::new(&kept), role), (elsewhere.as_path(), Role::Embedder));
    assert!(matches!(store.choose("gemma-3-270m"), Err(ModelError::Missing { .. })));
    fs::write(&elsewhere, "GGUF").unwrap();
    assert!(matches!(store.choose(elsewhere.to_str().unwrap()), Err(ModelError::Invalid { .. })));
}

#[test]
fn without_a_choice_the_best_that_fits_is_used_and_preferably_one_that_is_here() {
    let (_folder, store) = store();
    let llm = |gib: u64| store.llm_to_use(Some(gib << 30)).unwrap();
    assert_eq!(llm(8).name, "qwen2.5-coder-1.5b-instruct");
    assert_eq!(store.embedder_to_use().unwrap().name, DEFAULT_EMBEDDER);
    put(&store, "smollm2-135m-instruct", "smollm2-135m-instruct");
    let small = llm(8);
    assert_eq!(small.name, "smollm2-135m-instruct");
    assert!(small.why.contains("qwen2.5-coder-1.5b-instruct would fit"), "{}", small.why);
    // Never one that needs more than there is.
    fs::copy(store.path("smollm2-135m-instruct"), store.path("qwen2.5-coder-1.5b-instruct")).unwrap();
    assert_eq!(llm(0).name, "smollm2-135m-instruct");
    assert_eq!(llm(8).name, "qwen2.5-coder-1.5b-instruct");
    put(&store, "all-minilm-l6-v2", "all-minilm-l6-v2");
    assert_eq!(store.embedder_to_use().unwrap().name, "all-minilm-l6-v2");
}

#[test]
fn a_damaged_record_does_not_hide_a_model_and_damaged_choices_are_told() {
    let (_folder, store) = store();
    put(&store, "smollm2-135m-instruct", "mine");
    fs::write(store.record_path("mine"), "{").unwrap();
    assert!(store.list().unwrap().iter().any(|row| row.name == "mine" && row.path.is_some()));
    fs::write(store.choices_path(), "{").unwrap();
    assert!(matches!(store.list(), Err(ModelError::Record { .. })));
}
