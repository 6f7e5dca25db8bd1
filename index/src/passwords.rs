//! The person's own passwords, tried on locked files: a file of one a line that only they can read.
//!
//! They are read when a locked file is met, and kept nowhere else.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use sha2::{Digest, Sha256};

use crate::limits::{PASSWORD_BYTES_MAX, PASSWORDS_FILE_MAX, PASSWORDS_MAX};

/// The passwords in the file; none where there is no file.
///
/// # Errors
/// Why the file is not used, in words for the person.
pub(crate) fn read(path: &Path) -> Result<Vec<String>, String> {
    let unused = |what: String| format!("the passwords in {} are not used: {what}", path.display());
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = match File::options().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unused(error.to_string())),
    };
    let metadata = file.metadata().map_err(|error| unused(error.to_string()))?;
    if !metadata.is_file() {
        return Err(unused("it is not a file".to_owned()));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(unused("the file is another user's".to_owned()));
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(unused(format!("others may read the file (chmod 600 {})", path.display())));
    }
    let mut bytes = Vec::new();
    file.take(PASSWORDS_FILE_MAX).read_to_end(&mut bytes).map_err(|error| unused(error.to_string()))?;
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.trim_start_matches('\u{FEFF}').lines().filter(|l| !l.is_empty() && l.len() <= PASSWORD_BYTES_MAX);
    Ok(lines.take(PASSWORDS_MAX).map(str::to_owned).collect())
}

/// Tells one state of the file from another by its place and times alone: nothing that is kept says what is in it.
pub(crate) fn mark(path: &Path) -> i64 {
    let Ok(metadata) = std::fs::symlink_metadata(path) else { return 0 };
    let mut digest = Sha256::new();
    for n in [metadata.ino(), metadata.size(), u64::from(metadata.mode()), u64::from(metadata.uid())] {
        digest.update(n.to_le_bytes());
    }
    // The time of the last change of content, owner or permissions.
    digest.update(metadata.ctime().to_le_bytes());
    digest.update(metadata.ctime_nsec().to_le_bytes());
    digest.finalize().first_chunk::<8>().map_or(1, |b| i64::from_le_bytes(*b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_a_private_file_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("passwords");
        assert_eq!(read(&path), Ok(Vec::new()));
        std::fs::write(&path, "one\n\ntwo words\r\n").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let refused = read(&path).unwrap_err();
        assert!(refused.contains("chmod 600") && !refused.contains("one"), "{refused}");
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read(&path).unwrap(), ["one", "two words"]);
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(read(&link).is_err());
    }

    #[test]
    fn a_change_of_content_or_permissions_changes_the_mark() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("passwords");
        let none = mark(&path);
        std::fs::write(&path, "one").unwrap();
        let one = mark(&path);
        assert_eq!(mark(&path), one);
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        let private = mark(&path);
        std::fs::write(&path, "other words").unwrap();
        let other = mark(&path);
        assert!(none != one && one != private && private != other && none != other);
    }
}
