//! How far a worker is confined.

use std::fmt;

/// What holds a worker, as it says of itself once it has entered it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Level {
    /// Limits on memory, processor time, output and processes.
    pub limits: bool,
    /// The version of Landlock that bars it from all files and the network; 0 for none.
    pub files: u8,
    /// Whether only a few system calls are let through (seccomp).
    pub calls: bool,
    /// Why a level is lacking; empty if none is.
    pub note: String,
}

impl Level {
    /// Whether nothing is lacking.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.limits && self.files > 0 && self.calls
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut held = Vec::new();
        if self.calls {
            held.push("system calls filtered (seccomp)".to_owned());
        }
        if self.files > 0 {
            held.push(format!("no files (Landlock {})", self.files));
        }
        if self.limits {
            held.push("memory, time, output and processes limited".to_owned());
        }
        let name = match (self.is_full(), held.is_empty()) {
            (true, _) => "full",
            (false, false) => "partial",
            (false, true) => return write!(f, "none: {}", self.note),
        };
        write!(f, "{name}: {}", held.join(", "))?;
        if self.note.is_empty() { Ok(()) } else { write!(f, "; {}", self.note) }
    }
}
