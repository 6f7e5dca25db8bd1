//! How many threads compute.

use std::collections::HashSet;

/// The physical cores that this process may use; sharing a core's units between two threads gains nothing here.
pub fn compute_threads() -> usize {
    let allowed = std::thread::available_parallelism().map_or(1, usize::from);
    physical_cores().map_or(allowed, |cores| cores.clamp(1, allowed))
}

/// Distinct (package, core) pairs of the system's CPUs.
fn physical_cores() -> Option<usize> {
    let mut cores = HashSet::new();
    for entry in std::fs::read_dir("/sys/devices/system/cpu").ok()? {
        let path = entry.ok()?.path();
        let name = path.file_name()?.to_str()?;
        if !name.strip_prefix("cpu").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit())) {
            continue;
        }
        let read = |file: &str| std::fs::read_to_string(path.join("topology").join(file)).ok();
        if let (Some(package), Some(core)) = (read("physical_package_id"), read("core_id")) {
            cores.insert((package, core));
        }
    }
    (!cores.is_empty()).then_some(cores.len())
}
