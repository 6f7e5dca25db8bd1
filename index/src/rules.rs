//! What in a folder is no document: hidden files, litter of programs, and what ignore files name.
//!
//! Nothing here is listed anywhere: a person's `files` shows what they could miss, not a browser's half downloads.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{Mode, OFlags};

use crate::limits::IGNORE_FILE_BYTES_MAX;

/// Ignore files, in the order in which they are read; later lines win.
pub(crate) const IGNORE_FILES: [&str; 2] = [".gitignore", ".satchelignore"];

const LITTER_FOLDERS: &[&str] =
    &["node_modules", "__pycache__", "venv", "$RECYCLE.BIN", "System Volume Information", "lost+found"];

const LITTER_FILES: &[&str] = &["Thumbs.db", "ehthumbs.db", "desktop.ini", "Icon\r"];

const LITTER_ENDINGS: &[&str] =
    &["~", ".tmp", ".temp", ".swp", ".swo", ".swx", ".part", ".partial", ".crdownload", ".download", ".lock", ".pid"];

/// Litter by its name alone.
pub(crate) fn is_litter(name: &OsStr, folder: bool) -> bool {
    let bytes = name.as_bytes();
    if bytes.first() == Some(&b'.') || bytes.starts_with(b"~$") {
        return true;
    }
    if folder {
        return LITTER_FOLDERS.iter().any(|n| n.as_bytes() == bytes);
    }
    LITTER_FILES.iter().any(|n| n.as_bytes() == bytes)
        || LITTER_ENDINGS.iter().any(|end| bytes.len() > end.len() && bytes.ends_with(end.as_bytes()))
}

/// A folder called `target` is a build folder if it looks like one; it might as well hold someone's sales targets.
pub(crate) fn is_build_folder(name: &OsStr, folder: impl AsFd) -> bool {
    name == "target"
        && [c"CACHEDIR.TAG", c"debug", c"release"].into_iter().any(|inner| crate::beneath::stat(&folder, inner).is_ok())
}

/// The ignore files of the folders from the root down to one folder.
#[derive(Default, Clone)]
pub(crate) struct Rules {
    /// Outermost first; folders without ignore files are left out.
    layers: Vec<std::sync::Arc<Gitignore>>,
}

impl Rules {
    /// These rules and those that the folder itself brings.
    pub(crate) fn enter(&self, folder: impl AsFd, path: &Path) -> Self {
        let mut builder = GitignoreBuilder::new(path);
        let mut any = false;
        for name in IGNORE_FILES {
            for line in read_ignore_file(&folder, name).unwrap_or_default().lines() {
                // A line that is no pattern is skipped, as git does.
                any |= builder.add_line(None, line).is_ok();
            }
        }
        let mut rules = self.clone();
        if any && let Ok(layer) = builder.build() {
            rules.layers.push(std::sync::Arc::new(layer));
        }
        rules
    }

    /// Whether an entry of the folder is left out. Its parents are known to be let in.
    pub(crate) fn leave_out(&self, path: &Path, folder: bool) -> bool {
        for layer in self.layers.iter().rev() {
            match layer.matched(path, folder) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}

fn read_ignore_file(folder: impl AsFd, name: &str) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = rustix::fs::openat(folder, name, flags, Mode::empty()).ok()?;
    if !crate::beneath::is_file(&rustix::fs::fstat(&file).ok()?) {
        return None;
    }
    let bytes = crate::beneath::read(&mut File::from(file), 0, IGNORE_FILE_BYTES_MAX).ok()??;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn litter_is_known_by_name() {
        for name in [
            "~$report.docx",
            ".~lock.report.odt#",
            ".DS_Store",
            "Thumbs.db",
            "draft.txt~",
            ".draft.txt.swp",
            "movie.mkv.part",
            "doc.pdf.crdownload",
            "a.tmp",
        ] {
            assert!(is_litter(OsStr::new(name), false), "{name}");
        }
        for name in ["notes.txt", "tmp", "~", "swp", "NUL", "-rf.txt", "trailing.dots..."] {
            assert!(!is_litter(OsStr::new(name), false), "{name}");
        }
        assert!(is_litter(OsStr::new("node_modules"), true) && !is_litter(OsStr::new("node_modules"), false));
    }

    #[test]
    fn inner_rules_win_over_outer_ones() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        std::fs::write(dir.path().join(".gitignore"), "*.log\nbuild/\n/top.txt\n").unwrap();
        std::fs::write(dir.path().join("sub/.satchelignore"), "!keep.log\n").unwrap();
        let root = crate::beneath::open_root(dir.path()).unwrap();
        let outer = Rules::default().enter(&root, dir.path());
        let sub = crate::beneath::open_folder(&root, c"sub").unwrap();
        let inner = outer.enter(&sub, &dir.path().join("sub"));
        let out = |rules: &Rules, path: &str, folder| rules.leave_out(&dir.path().join(path), folder);
        assert!(out(&outer, "a.log", false) && out(&outer, "build", true) && !out(&outer, "build", false));
        assert!(out(&outer, "top.txt", false) && !out(&inner, "sub/top.txt", false));
        assert!(out(&inner, "sub/a.log", false) && !out(&inner, "sub/keep.log", false));
    }
}
