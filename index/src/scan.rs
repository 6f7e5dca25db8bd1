//! Folders compared with the store: the truth about files.
//!
//! A scan covers a root or a part of it. It lists what is there, compares names, sizes and times with what is known, and
//! gives a plan. It reads no file and changes nothing.

use std::collections::HashMap;
use std::ffi::{CString, OsStr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use crate::beneath;
use crate::error::Error;
use crate::limits::{FOLDER_DEPTH_MAX, FOLDER_ENTRIES_MAX};
use crate::rules::{Rules, is_build_folder, is_litter};
use crate::store::documents::{self, Known, Stamp};
use crate::store::{Store, roots};
use crate::types::{RootState, State};

/// What is to be done to bring the store in step.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Files to read: new, changed, or cut for another embedder.
    pub read: Vec<Work>,
    /// Files that could not be read before and are tried again.
    pub retry: Vec<Work>,
    /// Folders that cannot be listed, with the reason.
    pub refused: Vec<(PathBuf, String)>,
    /// Known files that are not there any more.
    pub gone: Vec<PathBuf>,
    /// How the root was found; `None` if only a part was looked at.
    pub root: Option<(RootState, Option<i64>)>,
}

/// A file to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Work {
    pub path: PathBuf,
    pub bytes: u64,
}

/// What a walk found.
#[derive(Default)]
struct Found {
    files: HashMap<PathBuf, Stamp>,
    refused: Vec<(PathBuf, String)>,
}

/// Called with each folder before it is listed, so that a watch set up there misses nothing.
pub(crate) type OnFolder<'a> = &'a mut dyn FnMut(&Path);

/// Plans a whole root.
pub(crate) fn plan_root(store: &Store, root: &Path, epoch: i64, on_folder: OnFolder<'_>) -> Result<Plan, Error> {
    let folder = match beneath::open_root(root) {
        Ok(folder) => folder,
        Err(errno) => {
            let gone = matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::NODEV | Errno::NXIO | Errno::STALE);
            let state = if gone { RootState::Missing } else { RootState::Unreadable };
            return Ok(Plan { root: Some((state, None)), ..Plan::default() });
        }
    };
    let inode = rustix::fs::fstat(&folder).map(|s| beneath::stamp(&s).inode).ok();
    let mut walk = Walk { found: Found::default(), on_folder, own: store.dir() };
    walk.folder(folder, root.to_owned(), Rules::default());
    let found = walk.found;
    let known = store.read(|c| documents::known_below(c, root))?;
    if found.refused.iter().any(|(path, _)| path == root) {
        return Ok(Plan { root: Some((RootState::Unreadable, None)), ..Plan::default() });
    }
    let before = store.read(|c| roots::inode(c, root))?;
    if found.files.is_empty() && found.refused.is_empty() && !known.is_empty() && before.is_some() && before != inode {
        // An empty folder that is not the one scanned before: the mount point without its file system.
        return Ok(Plan { root: Some((RootState::Missing, None)), ..Plan::default() });
    }
    let mut plan = compare(found, known, epoch, true);
    plan.root = Some((RootState::Present, inode));
    Ok(plan)
}

/// Plans the file or folder at one path below a root, as an event named it.
pub(crate) fn plan_path(
    store: &Store,
    root: &Path,
    path: &Path,
    epoch: i64,
    on_folder: OnFolder<'_>,
) -> Result<Plan, Error> {
    let mut walk = Walk { found: Found::default(), on_folder, own: store.dir() };
    if walk.path(root, path).is_err() {
        // The root itself cannot be opened: that is for the scan of the root to judge.
        return Ok(Plan::default());
    }
    let found = walk.found;
    let known = store.read(|c| documents::known_below(c, path))?;
    Ok(compare(found, known, epoch, false))
}

fn compare(found: Found, known: Vec<(PathBuf, Known)>, epoch: i64, whole: bool) -> Plan {
    let mut plan = Plan { refused: found.refused, ..Plan::default() };
    let mut known: HashMap<PathBuf, Known> = known.into_iter().collect();
    let mut files: Vec<(PathBuf, Stamp)> = found.files.into_iter().collect();
    files.sort_by(|a, b| a.0.cmp(&b.0));
    for (path, stamp) in files {
        let work = Work { bytes: u64::try_from(stamp.size).unwrap_or(0), path };
        match known.remove(&work.path) {
            Some(k) if k.stamp == stamp && k.epoch == epoch && !k.stale && !k.outdated => {
                // What could not be read at all may be readable now; what failed in a reader would fail again.
                if whole && k.state == State::Failed && !k.read {
                    plan.retry.push(work);
                }
            }
            _ => plan.read.push(work),
        }
    }
    // What lies below a folder that could not be listed may still be there.
    let hidden = |path: &Path| plan.refused.iter().any(|(folder, _)| path.starts_with(folder));
    plan.gone = known.into_keys().filter(|path| !hidden(path)).collect();
    plan.gone.sort();
    plan
}

/// An open folder on the way down.
struct Frame {
    folder: OwnedFd,
    path: PathBuf,
    rules: Rules,
    /// Names still to visit, last first.
    entries: Vec<(CString, FileType)>,
}

struct Walk<'a> {
    found: Found,
    on_folder: OnFolder<'a>,
    /// The index's own folder, which is never looked into.
    own: &'a Path,
}

impl Walk<'_> {
    /// Lists a folder and everything below it, without recursion.
    fn folder(&mut self, folder: OwnedFd, path: PathBuf, rules: Rules) {
        let mut stack = Vec::new();
        self.push(&mut stack, folder, path, &rules);
        while let Some(frame) = stack.last_mut() {
            let Some((name, kind)) = frame.entries.pop() else {
                stack.pop();
                continue;
            };
            let path = frame.path.join(OsStr::from_bytes(name.as_bytes()));
            let Some(kind) = self.kind(frame, &name, kind, &path) else { continue };
            match kind {
                FileType::RegularFile => self.file(frame, &name, path),
                FileType::Directory => {
                    let opened = beneath::open_folder(&frame.folder, &name);
                    let rules = frame.rules.clone();
                    let deep = stack.len() >= FOLDER_DEPTH_MAX;
                    match opened {
                        _ if deep => {
                            self.refuse(path, format!("folders nested deeper than {FOLDER_DEPTH_MAX} are not read"))
                        }
                        Ok(folder) if is_build_folder(OsStr::from_bytes(name.as_bytes()), &folder) => {}
                        Ok(folder) => self.push(&mut stack, folder, path, &rules),
                        // Removed, or replaced by something else, since it was listed.
                        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                        Err(errno) => self.refuse(path, cannot_list(errno)),
                    }
                }
                _ => {}
            }
        }
    }

    fn push(&mut self, stack: &mut Vec<Frame>, folder: OwnedFd, path: PathBuf, rules: &Rules) {
        if path == self.own || beneath::is_system(&folder) {
            return;
        }
        (self.on_folder)(&path);
        let rules = rules.enter(&folder, &path);
        match list(&folder) {
            Ok(entries) => stack.push(Frame { folder, path, rules, entries }),
            Err(reason) => self.refuse(path, reason),
        }
    }

    /// The entry's type, if it is one to look at. Links and special files are passed over without being opened.
    fn kind(&mut self, frame: &Frame, name: &CString, listed: FileType, path: &Path) -> Option<FileType> {
        let kind = match listed {
            FileType::Unknown => match beneath::stat(&frame.folder, name) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                Err(_) => return None,
            },
            known => known,
        };
        let folder = kind == FileType::Directory;
        let looked_at = folder || kind == FileType::RegularFile;
        let name = OsStr::from_bytes(name.as_bytes());
        (looked_at && !is_litter(name, folder) && !frame.rules.leave_out(path, folder)).then_some(kind)
    }

    fn file(&mut self, frame: &Frame, name: &CString, path: PathBuf) {
        match beneath::stat(&frame.folder, name) {
            Ok(stat) if beneath::is_file(&stat) => {
                self.found.files.insert(path, beneath::stamp(&stat));
            }
            Ok(_) | Err(Errno::NOENT) => {}
            Err(errno) => self.refuse(path, cannot_list(errno)),
        }
    }

    fn refuse(&mut self, path: PathBuf, reason: String) {
        self.found.refused.push((path, reason));
    }

    /// One path, reached from the root so that the rules on the way hold.
    fn path(&mut self, root: &Path, path: &Path) -> Result<(), Errno> {
        let mut folder = beneath::open_root(root)?;
        let mut at = root.to_owned();
        let relative = path.strip_prefix(root).unwrap_or(Path::new(""));
        let mut rules = Rules::default();
        let mut depth = 1;
        if path.starts_with(self.own) {
            return Ok(());
        }
        for name in relative.iter() {
            rules = rules.enter(&folder, &at);
            at.push(name);
            let Ok(c_name) = CString::new(name.as_bytes()) else { return Ok(()) };
            let Ok(stat) = beneath::stat(&folder, &c_name) else { return Ok(()) };
            let is_folder = beneath::is_folder(&stat);
            if is_litter(name, is_folder) || rules.leave_out(&at, is_folder) {
                return Ok(());
            }
            if !is_folder {
                self.leaf(&at, path, &stat);
                return Ok(());
            }
            depth += 1;
            folder = match beneath::open_folder(&folder, &c_name) {
                Ok(inner) if is_build_folder(name, &inner) => return Ok(()),
                Ok(_) if depth > FOLDER_DEPTH_MAX => return Ok(()),
                Ok(inner) => inner,
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
                Err(errno) => {
                    self.refuse(at, cannot_list(errno));
                    return Ok(());
                }
            };
        }
        self.folder(folder, at, rules);
        Ok(())
    }

    /// A path that ends at a file. If more was to come, the file stands where a folder was: what was below is gone.
    fn leaf(&mut self, at: &Path, path: &Path, stat: &Stat) {
        if at == path && beneath::is_file(stat) {
            self.found.files.insert(at.to_owned(), beneath::stamp(stat));
        }
    }
}

fn cannot_list(errno: Errno) -> String {
    format!("cannot be listed: {}", std::io::Error::from(errno))
}

/// Names in a folder, in reverse order, so that popping gives them in order.
fn list(folder: &OwnedFd) -> Result<Vec<(CString, FileType)>, String> {
    let mut entries = Vec::new();
    for entry in beneath::entries(folder).map_err(cannot_list)? {
        let entry = entry.map_err(cannot_list)?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        if entries.len() >= FOLDER_ENTRIES_MAX {
            return Err(format!("it has more than {FOLDER_ENTRIES_MAX} entries"));
        }
        entries.push((name.to_owned(), entry.file_type()));
    }
    entries.sort_by(|a, b| b.0.cmp(&a.0));
    Ok(entries)
}
