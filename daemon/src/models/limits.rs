//! Every bound of the model store, with its reason.

use std::time::Duration;

/// For a name to resolve and a connection to be made: a machine behind a mirror goes on to the next source.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// For the status line after the request was sent.
pub const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
/// Between two pieces of a body; also how late a cancellation is seen on a dead line.
pub const READ_TIMEOUT: Duration = Duration::from_secs(15);
/// Connections in a row that bring nothing before a source is given up.
pub const FRUITLESS_ATTEMPTS: u32 = 3;
/// Read from a connection or file at a time: large enough that calls do not count, small enough for a phone.
pub const COPY_BUFFER: usize = 256 << 10;

/// pip without a single new byte for this long is ended; unpacking and index pages take seconds.
pub const PIP_STALL: Duration = Duration::from_secs(120);
/// Between two looks at what pip has fetched.
pub const PIP_POLL: Duration = Duration::from_millis(100);
/// Wheels asked for in one call of pip, which first keeps them all twice: bounds that to some 400 MB.
pub const WHEELS_PER_CALL: u32 = 8;
/// Kept of what pip says: its last lines hold the reason.
pub const PIP_MESSAGE: usize = 8 << 10;
/// Most entries looked at in pip's temporary folders; it makes one or two a wheel.
pub const PIP_ENTRIES: usize = 4096;

/// Between two reports of progress.
pub const REPORT_INTERVAL: Duration = Duration::from_millis(100);
/// The rate shown is an average over about this long.
pub const RATE_WINDOW: Duration = Duration::from_secs(5);

/// Left free on the disk beyond what a model needs, for the index and everything else.
pub const DISK_RESERVE: u64 = 64 << 20;
/// Longest record of a model or choice: they hold a handful of short strings.
pub const RECORD_BYTES: u64 = 64 << 10;
/// Longest name of a model.
pub const NAME_BYTES: usize = 64;
/// Most files of the models folder that are looked at.
pub const STORE_ENTRIES: usize = 10_000;
/// Characters shown of a metadata value: templates and vocabularies are long.
pub const SHOWN_CHARACTERS: usize = 120;
