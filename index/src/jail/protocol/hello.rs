//! The worker's first words: how far it is confined.

use std::io::{self, Read, Write};

use super::wire::{self, Broken};
use crate::jail::level::Level;

const MAGIC: &[u8; 4] = b"SXH1";

/// Both sides are one program; this guards against a worker of another build.
const VERSION: u32 = 2;

/// Bytes of the note.
const NOTE_MAX: usize = 1000;

pub(crate) fn write_hello(to: &mut impl Write, level: &Level) -> io::Result<()> {
    to.write_all(MAGIC)?;
    wire::put_number(to, VERSION)?;
    to.write_all(&[u8::from(level.limits), level.files, u8::from(level.calls)])?;
    wire::put_text(to, &crate::extract::short(&level.note, NOTE_MAX))?;
    to.flush()
}

pub(crate) fn read_hello(from: &mut impl Read) -> Result<Level, Broken> {
    if &wire::array(from)? != MAGIC || wire::u32(from)? != VERSION {
        return Err(Broken::Bad("it is not a worker of this program"));
    }
    Ok(Level {
        limits: wire::flag(from)?,
        files: wire::u8(from)?,
        calls: wire::flag(from)?,
        note: wire::text(from, NOTE_MAX)?,
    })
}
