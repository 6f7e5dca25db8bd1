//! How a command ends: its exit code, and its error in words or as JSON.

use std::io;

use satchel_ipc::{ClientError, Code, ErrorBody, ErrorReply, SocketError};

use super::render::escape;
use super::terminal::Terminal;

/// How a command that did not fail ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done, answered.
    Done,
    /// The documents do not hold the answer.
    Abstained,
}

impl Exit {
    fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Abstained => Code::NotInDocuments.exit_code(),
        }
    }
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// In the terms of the wire.
    #[error("{0}")]
    Told(ErrorBody),
    /// The output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

impl From<ErrorBody> for Failure {
    fn from(error: ErrorBody) -> Self {
        Self::Told(error)
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Self::Told(error.to_body())
    }
}

impl From<SocketError> for Failure {
    fn from(error: SocketError) -> Self {
        let code = match error {
            SocketError::AlreadyRunning { .. } => Code::Busy,
            SocketError::PathTooLong { .. } => Code::BadRequest,
            _ => Code::Error,
        };
        Self::Told(ErrorBody::new(code, error.to_string()).with_hint(error.hint()))
    }
}

/// Tells the failure, if there is one, and gives the process's exit code.
pub fn conclude(result: Result<Exit, Failure>, terminal: &mut Terminal) -> u8 {
    let error = match result {
        Ok(exit) => return exit.code(),
        // `satchel files | head`: the reader has what it wanted.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => return 0,
        Err(Failure::Output(error)) => ErrorBody::new(Code::Error, format!("cannot write the output: {error}")),
        Err(Failure::Told(error)) => error,
    };
    let code = error.code.exit_code();
    // There is no further place to tell a failure of these writes; the exit code still does.
    let _ = tell(error, terminal);
    code
}

fn tell(error: ErrorBody, terminal: &mut Terminal) -> io::Result<()> {
    if terminal.json {
        return terminal.print_json(&ErrorReply { error });
    }
    writeln!(terminal.err, "satchel: {}", escape(&error.message))?;
    if let Some(hint) = &error.hint {
        writeln!(terminal.err, "  hint: {}", escape(hint))?;
    }
    terminal.err.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(error: Failure, json: bool) -> (u8, String, String) {
        let (mut terminal, capture) = Terminal::captured(json);
        let code = conclude(Err(error), &mut terminal);
        (code, capture.out(), capture.err())
    }

    #[test]
    fn an_error_is_one_sentence_and_a_hint() {
        let error = ErrorBody::new(Code::ModelMissing, "no model\x1b[2J").with_hint("pull one");
        let (code, out, err) = told(error.clone().into(), false);
        assert_eq!((code, out.as_str()), (8, ""));
        assert_eq!(err, "satchel: no model\\u{1b}[2J\n  hint: pull one\n");
        let (code, out, err) = told(error.into(), true);
        assert_eq!((code, err.as_str()), (8, ""));
        assert_eq!(serde_json::from_str::<ErrorReply>(&out).unwrap().error.code, Code::ModelMissing);
    }

    #[test]
    fn every_code_ends_with_its_own_exit_code() {
        for code in Code::all() {
            assert_eq!(told(ErrorBody::new(code, "m").into(), false).0, code.exit_code());
        }
        let (mut terminal, _) = Terminal::captured(false);
        assert_eq!(conclude(Ok(Exit::Done), &mut terminal), 0);
        assert_eq!(conclude(Ok(Exit::Abstained), &mut terminal), 3);
    }

    #[test]
    fn a_closed_pipe_is_no_failure_and_a_full_disk_is() {
        assert_eq!(told(Failure::Output(io::ErrorKind::BrokenPipe.into()), false), (0, String::new(), String::new()));
        assert_eq!(told(Failure::Output(io::ErrorKind::StorageFull.into()), false).0, 1);
    }
}
