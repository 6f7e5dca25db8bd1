//! Error codes: one table from a code to its wire name, HTTP status and exit code.

use serde::{Deserialize, Serialize};

/// What went wrong, as one of a closed set of names. The same set serves the wire and the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The documents do not hold the answer.
    NotInDocuments,
    /// The documents asked about are still waiting to be indexed.
    NotIndexedYet,
    /// The index no longer matches the files.
    IndexStale,
    /// The work would exceed the memory budget.
    OverBudget,
    /// Held back for heat or battery.
    Throttled,
    /// Nothing listens on the socket. Only clients produce it.
    NoDaemon,
    /// No model is installed under the name asked for.
    ModelMissing,
    /// The model file is broken or of an unknown kind.
    ModelInvalid,
    /// The request is malformed: unknown route, field or value.
    BadRequest,
    /// A text or body is longer than its limit.
    TooLong,
    /// A bound on concurrent work is reached.
    Busy,
    /// The work was given up: the deadline passed, the peer left, or the daemon stops.
    Cancelled,
    /// Anything else, a panic in a handler included. Codes from newer daemons are read as this one.
    #[serde(other)]
    Error,
}

/// One row of the table.
struct Row {
    code: Code,
    name: &'static str,
    http_status: u16,
    exit_code: u8,
}

/// 499 is the customary status for "client closed request": no registered one says "given up".
const TABLE: [Row; 13] = [
    row(Code::NotInDocuments, "not_in_documents", 404, 3),
    row(Code::NotIndexedYet, "not_indexed_yet", 503, 4),
    row(Code::IndexStale, "index_stale", 409, 4),
    row(Code::OverBudget, "over_budget", 507, 5),
    row(Code::Throttled, "throttled", 429, 6),
    row(Code::NoDaemon, "no_daemon", 502, 7),
    row(Code::ModelMissing, "model_missing", 424, 8),
    row(Code::ModelInvalid, "model_invalid", 422, 8),
    row(Code::BadRequest, "bad_request", 400, 2),
    row(Code::TooLong, "too_long", 413, 1),
    row(Code::Busy, "busy", 503, 1),
    row(Code::Cancelled, "cancelled", 499, 1),
    row(Code::Error, "error", 500, 1),
];

const fn row(code: Code, name: &'static str, http_status: u16, exit_code: u8) -> Row {
    Row { code, name, http_status, exit_code }
}

impl Code {
    fn entry(self) -> &'static Row {
        // The table lists the variants in order of declaration (a test holds it to that).
        &TABLE[self as usize]
    }

    /// The name on the wire, such as `model_missing`.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// The HTTP status this code is sent with.
    pub fn http_status(self) -> u16 {
        self.entry().http_status
    }

    /// The exit code of the command line (1 to 8).
    pub fn exit_code(self) -> u8 {
        self.entry().exit_code
    }

    /// All codes, in the order of the table.
    pub fn all() -> impl Iterator<Item = Code> {
        TABLE.iter().map(|row| row.code)
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// An error as it travels: `{"code", "message", "hint"}`. `message` says what and where, `hint` what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct ErrorBody {
    /// Which kind of error.
    pub code: Code,
    /// One sentence for a person.
    pub message: String,
    /// What the person can do, when something can be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl ErrorBody {
    /// An error without a hint.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None }
    }

    /// The same error with a hint.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Shorthand for the most frequent code at the edge.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(Code::BadRequest, message)
    }
}

/// The envelope of an error reply: `{"error": {...}}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorReply {
    /// The error.
    pub error: ErrorBody,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_agrees_with_the_enum_and_with_serde() {
        for (position, row) in TABLE.iter().enumerate() {
            assert_eq!(row.code as usize, position, "{} is out of order", row.name);
            assert_eq!(serde_json::to_value(row.code).unwrap(), row.name);
            assert_eq!(serde_json::from_value::<Code>(row.name.into()).unwrap(), row.code);
            assert!((400..600).contains(&row.http_status), "{}", row.name);
            assert!((1..=8).contains(&row.exit_code), "{}", row.name);
        }
    }

    #[test]
    fn exit_codes_are_those_of_the_contract() {
        let exits: Vec<(&str, u8)> = Code::all().map(|code| (code.name(), code.exit_code())).collect();
        for (name, exit) in [("not_in_documents", 3), ("not_indexed_yet", 4), ("index_stale", 4), ("over_budget", 5)] {
            assert!(exits.contains(&(name, exit)), "{name}");
        }
        for (name, exit) in [("throttled", 6), ("no_daemon", 7), ("model_missing", 8), ("model_invalid", 8)] {
            assert!(exits.contains(&(name, exit)), "{name}");
        }
        assert!(exits.contains(&("bad_request", 2)));
    }

    #[test]
    fn an_unknown_code_of_a_newer_daemon_is_still_an_error() {
        let body: ErrorBody = serde_json::from_str(r#"{"code":"too_cold","message":"m"}"#).unwrap();
        assert_eq!(body.code, Code::Error);
        assert_eq!(body.hint, None);
    }
}
