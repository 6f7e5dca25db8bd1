//! Downloads that resume.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use ureq::Agent;
use ureq::http::header::{CONTENT_LENGTH, CONTENT_RANGE, RANGE};
use ureq::http::{Response, StatusCode};

use crate::models::catalogue::Artifact;
use crate::models::error::{ModelError, SourceError, Stop};
use crate::models::files;
use crate::models::limits::{CONNECT_TIMEOUT, FRUITLESS_ATTEMPTS, READ_TIMEOUT, RESPONSE_TIMEOUT};

/// A client whose every wait is bounded.
pub fn agent() -> Agent {
    Agent::config_builder()
        .timeout_resolve(Some(CONNECT_TIMEOUT))
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_recv_response(Some(RESPONSE_TIMEOUT))
        .timeout_per_read(Some(READ_TIMEOUT))
        .http_status_as_error(false)
        .user_agent(concat!("satchel/", env!("CARGO_PKG_VERSION")))
        .build()
        .new_agent()
}

/// Fetches a file into `part`, going on where that ends. `step` is told the bytes at hand, and may stop it.
/// When the connection breaks it is made anew, as long as each one brings something.
pub fn fetch(
    agent: &Agent,
    url: &str,
    artifact: &Artifact,
    part: &Path,
    step: &mut dyn FnMut(u64) -> Result<(), ModelError>,
) -> Result<(), Stop> {
    let mut fruitless = 0;
    let mut reached = false;
    loop {
        let before = files::size(part);
        match before.cmp(&artifact.bytes) {
            std::cmp::Ordering::Equal => return Ok(()),
            // Of another file, or damaged.
            std::cmp::Ordering::Greater => files::remove(part)?,
            std::cmp::Ordering::Less => {}
        }
        let error = match attempt(agent, url, artifact, part, step) {
            Ok(()) => return Ok(()),
            Err(Stop::Source(error @ (SourceError::Broken { .. } | SourceError::Http(_)))) => error,
            Err(stop) => return Err(stop),
        };
        let broke_off = matches!(error, SourceError::Broken { .. });
        reached |= broke_off;
        fruitless = if files::size(part) > before { 0 } else { fruitless + 1 };
        // Who was never reached is not asked again.
        if !reached || fruitless >= FRUITLESS_ATTEMPTS {
            return Err(error.into());
        }
    }
}

fn attempt(
    agent: &Agent,
    url: &str,
    artifact: &Artifact,
    part: &Path,
    step: &mut dyn FnMut(u64) -> Result<(), ModelError>,
) -> Result<(), Stop> {
    let have = match files::size(part) {
        have if have < artifact.bytes => have,
        _ => 0,
    };
    let mut request = agent.get(url);
    if have > 0 {
        request = request.header(RANGE, format!("bytes={have}-"));
    }
    let mut response = request.call().map_err(|error| SourceError::Http(Box::new(error)))?;
    let (mut file, mut at) = match response.status() {
        StatusCode::OK => (files::open_to_write(part, false)?, 0),
        StatusCode::PARTIAL_CONTENT => {
            if range_start(&response) != Some(have) {
                // What it sends cannot be put anywhere; the next request is for the whole.
                files::remove(part)?;
                let source = io::Error::other("the server sent another range than asked for");
                return Err(SourceError::Broken { at: have, total: artifact.bytes, source }.into());
            }
            (files::open_to_write(part, true)?, have)
        }
        status => return Err(SourceError::Status(status.as_u16()).into()),
    };
    let length = response.headers().get(CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse::<u64>().ok());
    if let Some(found) = length.and_then(|n| n.checked_add(at)).filter(|n| *n != artifact.bytes) {
        return Err(wrong_size(artifact, found).into());
    }
    step(at)?;
    let mut body = response.body_mut().with_config().limit(u64::MAX).reader();
    let copied = files::read_pieces(&mut body, Ended::Broken, |piece| {
        at += piece.len() as u64;
        if at > artifact.bytes {
            return Err(Ended::Stop(wrong_size(artifact, at).into()));
        }
        write(&mut file, piece, part).map_err(|error| Ended::Stop(error.into()))?;
        step(at).map_err(|error| Ended::Stop(error.into()))
    });
    let source = match copied {
        Ok(()) if at == artifact.bytes => return Ok(()),
        Ok(()) => io::ErrorKind::UnexpectedEof.into(),
        Err(Ended::Broken(source)) => source,
        Err(Ended::Stop(stop)) => return Err(stop),
    };
    Err(SourceError::Broken { at, total: artifact.bytes, source }.into())
}

/// Why the copying ended: the connection broke, or we stopped it.
enum Ended {
    Broken(io::Error),
    Stop(Stop),
}

fn write(file: &mut File, piece: &[u8], path: &Path) -> Result<(), ModelError> {
    file.write_all(piece).map_err(ModelError::io("write", path))
}

fn wrong_size(artifact: &Artifact, found: u64) -> SourceError {
    SourceError::Size { file: artifact.path.to_owned(), found, expected: artifact.bytes }
}

/// First byte of what a partial answer holds: `bytes FROM-TO/TOTAL`.
fn range_start<T>(response: &Response<T>) -> Option<u64> {
    let range = response.headers().get(CONTENT_RANGE)?.to_str().ok()?;
    range.strip_prefix("bytes ")?.split_once('-')?.0.trim().parse().ok()
}

#[cfg(test)]
pub(super) mod tests;
