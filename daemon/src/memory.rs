//! What this process takes of memory, as the system counts it.

/// Bytes resident.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    /// Now.
    pub resident: u64,
    /// The highest so far.
    pub peak: u64,
}

/// Reads the process's figures; zeros where the system does not tell.
pub fn usage() -> Usage {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find_map(|l| l.strip_prefix(name))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
    };
    Usage { resident: field("VmRSS:").unwrap_or(0), peak: field("VmHWM:").unwrap_or(0) }
}
