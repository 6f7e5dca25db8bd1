//! satchel-ipc
