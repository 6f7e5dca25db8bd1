//! A filter of system calls (seccomp): those that memory, pipes at hand and the end of a process need, and no other.
//!
//! What is not let through fails with `EPERM`; a library that asks for something it can do without goes on.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

/// Harmless with any arguments once no descriptor but the pipes is open.
const ALLOWED: &[i64] = &[
    // The pipes.
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_close,
    // Memory.
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_brk,
    libc::SYS_madvise,
    // Locks, time, chance.
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_getrandom,
    libc::SYS_restart_syscall,
    // Signals to itself: a panic, an overflow of the stack.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_getpid,
    libc::SYS_gettid,
    // The end.
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Filters the calls of all threads of this process from now on.
pub(super) fn enter() -> Result<(), String> {
    let program = program().map_err(|error| error.to_string())?;
    seccompiler::apply_filter_all_threads(&program).map_err(|error| error.to_string())
}

fn program() -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
    // Memory that can be written never becomes memory that can be run.
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        let exec = u64::from(libc::PROT_EXEC.unsigned_abs());
        rules.insert(call, vec![only(2, SeccompCmpOp::MaskedEq(exec), 0)?]);
    }
    let own = u64::from(std::process::id());
    rules.insert(libc::SYS_tgkill, vec![only(0, SeccompCmpOp::Eq, own)?]);
    let arch = std::env::consts::ARCH.try_into()?;
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    SeccompFilter::new(rules, refuse, SeccompAction::Allow, arch)?.try_into()
}

fn only(argument: u8, compare: SeccompCmpOp, value: u64) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(vec![SeccompCondition::new(argument, SeccompCmpArgLen::Dword, compare, value)?])
}
