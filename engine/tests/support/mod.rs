//! Where the tests find models.

use std::io::Write;
use std::path::PathBuf;

/// The path of a test model: `<SATCHEL_TEST_MODELS>/NAME.gguf`, else `<target>/test-models/NAME.gguf`.
///
/// # Panics
/// With the way to get it when it is not there.
pub fn model(name: &str) -> PathBuf {
    let path = path(name);
    assert!(
        path.is_file(),
        "the test model {} is missing: run `satchel model pull {name}` and put the file there, or set \
         SATCHEL_TEST_MODELS to the folder that has it",
        path.display()
    );
    path
}

/// Whether a model that is not everywhere is there; if not, says that its test is skipped.
#[allow(dead_code, reason = "not every test has such models")]
pub fn present(name: &str) -> bool {
    let there = path(name).is_file();
    if !there {
        say(&format!("SKIPPED: {name} is not there; run `satchel model pull {name}` to compare it"));
    }
    there
}

/// Shows a line even when the test passes: past the capture of the test harness.
#[allow(dead_code, reason = "not every test has figures")]
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn path(name: &str) -> PathBuf {
    let folder = std::env::var_os("SATCHEL_TEST_MODELS").map_or_else(default_folder, PathBuf::from);
    folder.join(format!("{name}.gguf"))
}

/// The test binary lies in `<target>/<profile>/deps`.
fn default_folder() -> PathBuf {
    let binary = std::env::current_exe().unwrap();
    binary.ancestors().nth(3).unwrap().join("test-models")
}
