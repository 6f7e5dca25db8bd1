//! Opening files below a root without ever leaving it.
//!
//! Every step is relative to the descriptor of the folder before it and follows no symbolic link, so neither a link nor a
//! rename in the middle can lead outside, and a path longer than the system's limit is no obstacle. Only regular files are
//! opened for reading; the open itself never waits (a FIFO or device would).

use std::ffi::CStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::store::documents::Stamp;

const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);
const FILE: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// Opens the folder of a root. The root's own path may pass through links: the person chose it.
pub(crate) fn open_root(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    rustix::fs::open(path, flags, Mode::empty())
}

/// Opens a folder inside a folder.
pub(crate) fn open_folder(parent: impl AsFd, name: &CStr) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(parent, name, FOLDER, Mode::empty())
}

/// What a name inside a folder is; links are not followed.
pub(crate) fn stat(parent: impl AsFd, name: &CStr) -> Result<Stat, Errno> {
    rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)
}

/// Reads a folder.
pub(crate) fn entries(folder: impl AsFd) -> Result<Dir, Errno> {
    Dir::read_from(folder)
}

/// Whether a folder shows the system's state instead of holding files: processes (with the secrets in their environments),
/// devices, control groups. Told by the file system, wherever it is mounted.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn is_system(folder: impl AsFd) -> bool {
    // procfs, sysfs, cgroup, cgroup2, debugfs, tracefs, securityfs, configfs, devpts, bpf (magic.h of the kernel).
    const MAGIC: [i64; 10] = [
        0x9fa0,
        0x6265_6572,
        0x27_e0eb,
        0x6367_7270,
        0x6462_6720,
        0x7472_6163,
        0x7363_6673,
        0x6265_6570,
        0x1cd1,
        0xcafe_4a11,
    ];
    #[allow(clippy::unnecessary_cast, reason = "the field's type differs from target to target")]
    rustix::fs::fstatfs(folder).is_ok_and(|s| MAGIC.contains(&(s.f_type as i64)))
}

/// Elsewhere none is known.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn is_system(_folder: impl AsFd) -> bool {
    false
}

/// Why a path below a root was not opened.
#[derive(Debug)]
pub(crate) enum Barred {
    /// It is not there (or a folder on the way is not).
    Gone,
    /// It, or a folder on the way, is a link or something that is no file.
    NotAFile,
    /// The system refused.
    System(Errno),
}

impl From<Errno> for Barred {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT | Errno::NOTDIR => Self::Gone,
            // Links with O_NOFOLLOW; devices and sockets.
            Errno::LOOP | Errno::MLINK | Errno::NXIO | Errno::NODEV => Self::NotAFile,
            other => Self::System(other),
        }
    }
}

/// Opens the regular file at `relative` below the root.
pub(crate) fn open_file(root: &Path, relative: &Path) -> Result<(File, Stat), Barred> {
    let (parent, name) = walk(root, relative)?;
    // What is no regular file is not even opened: opening a device can have effects.
    let before = rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if !is_file(&before) {
        return Err(Barred::NotAFile);
    }
    let file = rustix::fs::openat(&parent, name, FILE, Mode::empty())?;
    let stat = rustix::fs::fstat(&file)?;
    if !is_file(&stat) {
        return Err(Barred::NotAFile);
    }
    Ok((File::from(file), stat))
}

/// What lies at `relative` below the root; links are not followed.
pub(crate) fn stat_path(root: &Path, relative: &Path) -> Result<Stat, Barred> {
    let (parent, name) = walk(root, relative)?;
    Ok(rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)?)
}

fn walk<'a>(root: &Path, relative: &'a Path) -> Result<(OwnedFd, &'a std::ffi::OsStr), Barred> {
    let mut folder = open_root(root)?;
    let mut names = relative.components().filter_map(|c| match c {
        Component::Normal(name) => Some(Ok(name)),
        Component::CurDir => None,
        _ => Some(Err(Barred::NotAFile)),
    });
    let mut name = names.next().ok_or(Barred::NotAFile)??;
    for next in names {
        folder = rustix::fs::openat(&folder, name, FOLDER, Mode::empty())?;
        name = next?;
    }
    Ok((folder, name))
}

pub(crate) fn is_file(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

pub(crate) fn is_folder(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

/// The part of a stat that tells whether a file changed.
#[allow(clippy::unnecessary_cast, clippy::cast_possible_wrap, reason = "field types differ between systems")]
pub(crate) fn stamp(stat: &Stat) -> Stamp {
    let nanoseconds = |s: i64, n: i64| s.saturating_mul(1_000_000_000).saturating_add(n);
    Stamp {
        size: stat.st_size as i64,
        mtime: nanoseconds(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
        ctime: nanoseconds(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        inode: stat.st_ino as i64,
    }
}

/// Reads at most `max` bytes; `None` if there are more. The size that the system states is only a hint.
pub(crate) fn read(file: &mut File, hint: u64, max: u64) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::with_capacity(usize::try_from(hint.min(max)).unwrap_or(0).saturating_add(1));
    file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= max).then_some(bytes))
}
