//! Real models for tests: fetched once, by the code under test, and kept in the build folder.

use std::path::PathBuf;

use super::{Places, Store, pull};

/// `SATCHEL_TEST_MODELS`, else `test-models` in the build folder.
pub fn store() -> Store {
    let folder = std::env::var_os("SATCHEL_TEST_MODELS").map(PathBuf::from).unwrap_or_else(|| {
        // The test runs from TARGET/release/deps/NAME.
        let program = std::env::current_exe().unwrap();
        program.ancestors().nth(3).unwrap().join("test-models")
    });
    Store::new(folder)
}

/// The file of a model; fetched if it is not here yet.
pub fn model(name: &str) -> PathBuf {
    let store = store();
    if let Ok(path) = store.resolve(name) {
        return path;
    }
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(900);
    loop {
        match pull(&store, name, &Places::from_env(|name| std::env::var_os(name)), &mut |_| true) {
            Ok(listed) => return listed.path.unwrap(),
            // Another test process fetches it.
            Err(super::error::ModelError::Busy { .. }) if std::time::Instant::now() < deadline => {
                std::thread::sleep(std::time::Duration::from_millis(200));
            }
            Err(error) => panic!("`satchel model pull {name}` into {:?} failed: {error}", store.folder()),
        }
    }
}
