//! satchel-index
