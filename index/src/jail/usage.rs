//! What a process takes of memory, as the system counts it.

/// Figures in bytes; zeros where the system does not tell.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Usage {
    /// Address space.
    pub mapped: u64,
    /// Resident now.
    pub resident: u64,
    /// The most that was resident.
    pub peak: u64,
}

/// Of the process named in `/proc`: a number, or `self`.
pub(super) fn usage(process: &str) -> Usage {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find_map(|l| l.strip_prefix(name))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
    };
    Usage {
        mapped: field("VmSize:").unwrap_or(0),
        resident: field("VmRSS:").unwrap_or(0),
        peak: field("VmHWM:").unwrap_or(0),
    }
}
