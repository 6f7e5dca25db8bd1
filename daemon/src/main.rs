//! The satchel binary.
fn main() {}
