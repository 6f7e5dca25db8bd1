//! End-to-end tests: a table of contents.
