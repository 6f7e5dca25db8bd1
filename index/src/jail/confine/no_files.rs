//! Landlock with no rule that allows anything: no file can be opened, no port reached, nobody signalled.

use landlock::{
    ABI, Access, AccessFs, AccessNet, LandlockStatus, Ruleset, RulesetAttr, RulesetError, RulesetStatus, Scope,
};

/// The newest version whose rights are named here; an older kernel takes those it knows.
const NEWEST: ABI = ABI::V6;

/// Enters it for this thread and those it starts, and gives the version that holds.
pub(super) fn enter() -> Result<u8, String> {
    let status = restrict().map_err(|error| error.to_string())?;
    match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, _) => Err("the kernel has none, or it is not switched on".to_owned()),
        (_, LandlockStatus::Available { effective_abi, .. }) => Ok(u8::try_from(effective_abi as i32).unwrap_or(1)),
        _ => Err("the kernel says that it has none".to_owned()),
    }
}

fn restrict() -> Result<landlock::RestrictionStatus, RulesetError> {
    // This sets no_new_privs, too.
    Ruleset::default()
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?
        .restrict_self()
}
