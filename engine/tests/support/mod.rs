//! Where the tests find models.

use std::path::PathBuf;

/// The path of a test model: `<SATCHEL_TEST_MODELS>/NAME.gguf`, else `<target>/test-models/NAME.gguf`.
///
/// # Panics
/// With the way to get it when it is not there.
pub fn model(name: &str) -> PathBuf {
    let folder = std::env::var_os("SATCHEL_TEST_MODELS").map_or_else(default_folder, PathBuf::from);
    let path = folder.join(format!("{name}.gguf"));
    assert!(
        path.is_file(),
        "the test model {} is missing: run `satchel model pull {name}` and put the file there, or set \
         SATCHEL_TEST_MODELS to the folder that has it",
        path.display()
    );
    path
}

/// The test binary lies in `<target>/<profile>/deps`.
fn default_folder() -> PathBuf {
    let binary = std::env::current_exe().unwrap();
    binary.ancestors().nth(3).unwrap().join("test-models")
}
