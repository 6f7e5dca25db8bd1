//! Which LLM fits the memory of this machine.

use std::path::{Path, PathBuf};

/// A model, and a sentence that says why this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Its name, or a path.
    pub name: String,
    /// The reason.
    pub why: String,
}

/// Memory from which the 1.5B model is chosen: its 1.5 GiB, as much again for everything else a person runs.
pub const FOR_LARGE: u64 = 3 << 30;
/// Memory from which the 0.5B model is chosen.
pub const FOR_MEDIUM: u64 = 6 * (1 << 30) / 5;

/// The LLM for `available` bytes of memory.
#[must_use]
pub fn choose_llm(available: Option<u64>) -> Choice {
    let (name, why) = match available {
        Some(n) if n >= FOR_LARGE => ("qwen2.5-coder-1.5b-instruct", format!("{} of memory are available", gib(n))),
        Some(n) if n >= FOR_MEDIUM => (
            "qwen2.5-coder-0.5b-instruct",
            format!("{} of memory are available; the 1.5B model wants {}", gib(n), gib(FOR_LARGE)),
        ),
        Some(n) => (
            "smollm2-135m-instruct",
            format!("only {} of memory are available; the 0.5B model wants {}", gib(n), gib(FOR_MEDIUM)),
        ),
        None => {
            ("qwen2.5-coder-0.5b-instruct", "how much memory is available cannot be told on this system".to_owned())
        }
    };
    Choice { name: name.to_owned(), why }
}

fn gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64)
}

/// Memory that this process can take without hurting others: what the system says, or what its control group leaves
/// if that is less. None where neither is told.
#[must_use]
pub fn available_memory() -> Option<u64> {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    let system = read(Path::new("/proc/meminfo")).and_then(|text| mem_available(&text));
    let groups = read(Path::new("/proc/self/cgroup")).map(|text| group_folders(&text)).unwrap_or_default();
    let group = groups.iter().filter_map(|folder| {
        let read = |name: &str| read(&folder.join(name));
        group_available(&read("memory.max")?, &read("memory.current")?, &read("memory.stat").unwrap_or_default())
    });
    group.chain(system).min()
}

/// `MemAvailable` of `/proc/meminfo`.
fn mem_available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The folders of the process's group (version 2) and of the groups around it; a limit of any of them binds.
fn group_folders(cgroup: &str) -> Vec<PathBuf> {
    let root = Path::new("/sys/fs/cgroup");
    let Some(path) = cgroup.lines().find_map(|line| line.strip_prefix("0::/")) else { return Vec::new() };
    let group = root.join(path);
    group.ancestors().take_while(|folder| folder.starts_with(root)).map(Path::to_owned).collect()
}

/// What a group leaves: its limit less what it uses, of which cached file pages can be had back.
fn group_available(max: &str, current: &str, stat: &str) -> Option<u64> {
    // "max" is no number, and means that there is no limit.
    let max: u64 = max.trim().parse().ok()?;
    let current: u64 = current.trim().parse().ok()?;
    let inactive = stat.lines().find_map(|line| line.strip_prefix("inactive_file ")?.trim().parse().ok());
    Some(max.saturating_sub(current.saturating_sub(inactive.unwrap_or(0))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::catalogue::{Role, find};

    #[test]
    fn the_choice_fits_its_memory_and_says_why() {
        for (available, name, why) in [
            (Some(8u64 << 30), "qwen2.5-coder-1.5b-instruct", "8.0 GiB"),
            (Some(FOR_LARGE), "qwen2.5-coder-1.5b-instruct", "3.0 GiB"),
            (Some(FOR_LARGE - 1), "qwen2.5-coder-0.5b-instruct", "the 1.5B model wants 3.0 GiB"),
            (Some(FOR_MEDIUM), "qwen2.5-coder-0.5b-instruct", "1.2 GiB"),
            (Some(FOR_MEDIUM - 1), "smollm2-135m-instruct", "the 0.5B model wants 1.2 GiB"),
            (Some(0), "smollm2-135m-instruct", "only 0.0 GiB"),
            (None, "qwen2.5-coder-0.5b-instruct", "cannot be told"),
        ] {
            let choice = choose_llm(available);
            assert_eq!(choice.name, name, "{available:?}");
            assert!(choice.why.contains(why), "{:?} does not say {why:?}", choice.why);
            let entry = find(name).unwrap();
            assert!(entry.role == Role::Llm && entry.instructed);
            if let Some(available) = available.filter(|n| *n >= FOR_MEDIUM) {
                assert!(entry.memory < available, "{name} does not fit {available}");
            }
        }
    }

    #[test]
    fn memory_is_read_from_what_the_system_tells() {
        let meminfo = "MemTotal:       16000000 kB\nMemAvailable:    2048 kB\nBuffers: 1 kB\n";
        assert_eq!(mem_available(meminfo), Some(2048 * 1024));
        assert_eq!(mem_available("MemTotal: 1 kB"), None);
        assert_eq!(group_available("1000\n", "900\n", "anon 1\ninactive_file 300\n"), Some(400));
        assert_eq!(group_available("1000", "2000", ""), Some(0));
        assert_eq!(group_available("max\n", "900\n", ""), None);
        let folders = group_folders("12:pids:/x\n0::/user.slice/a.service\n");
        let expected = ["/sys/fs/cgroup/user.slice/a.service", "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup"];
        assert_eq!(folders, expected.map(PathBuf::from));
        assert!(group_folders("1:memory:/x\n").is_empty());
    }

    #[test]
    fn this_machine_has_some_memory() {
        if cfg!(target_os = "linux") {
            assert!(available_memory().is_some_and(|n| n > 1 << 20));
        }
    }
}
