//! satchel-engine
