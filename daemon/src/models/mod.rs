//! Models: the catalogue, the folder they are kept in, and how they get there.
//!
//! Nothing here loads a model to compute with it, prints, or knows the socket; the command line and the daemon call
//! [`pull()`], [`import_path`], [`show()`] and the [`Store`].

pub mod backend;
pub mod catalogue;
mod choice;
mod convert;
mod error;
mod files;
mod limits;
mod pull;
mod show;
mod store;
#[cfg(test)]
pub mod testing;

pub use choice::available_memory;
pub use convert::import_path;
pub use pull::{Phase, Places, Progress, pull};
pub use show::{Shown, show};
pub use store::{Listed, Store};
