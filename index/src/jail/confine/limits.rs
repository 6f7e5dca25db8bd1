//! Resource limits: what any Unix has.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::jail::usage::usage;
use crate::limits::WORKER_CPU_SECONDS_MAX;

/// Sets everything but the number of processes, which the reading thread still counts toward.
pub(super) fn enter(memory: u64) -> io::Result<()> {
    // Address space is counted from what the program itself has mapped, and what of that is resident is taken off: then
    // the resident size stays below `memory`, the stack of the reading thread included.
    let own = usage("self");
    let space = own.mapped.saturating_add(memory).saturating_sub(own.resident);
    set(Resource::As, space)?;
    set(Resource::Cpu, WORKER_CPU_SECONDS_MAX)?;
    // No file grows. A pipe is no file.
    set(Resource::Fsize, 0)?;
    // No descriptor beyond those at hand and the one that Landlock needs while it is set up.
    set(Resource::Nofile, 16)?;
    set(Resource::Core, 0)?;
    Ok(())
}

/// No other process or thread from now on (where the user is not root), and no other descriptor.
pub(super) fn no_more_processes() -> io::Result<()> {
    set(Resource::Nproc, 0)?;
    set(Resource::Nofile, 0)
}

/// Lowers both limits; a limit that is lower already stays.
fn set(resource: Resource, value: u64) -> io::Result<()> {
    let hard = getrlimit(resource).maximum.map_or(value, |maximum| maximum.min(value));
    Ok(setrlimit(resource, Rlimit { current: Some(hard), maximum: Some(hard) })?)
}
