//! Files of the store: locks, space, hashes, and writing so that a kill leaves the old file or the new one.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::error::ModelError;
use super::limits::{COPY_BUFFER, DISK_RESERVE, RECORD_BYTES};

/// Makes a folder and those above it; new ones are the user's own.
pub fn make_folder(path: &Path) -> Result<(), ModelError> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(ModelError::io("create", path))
}

/// Opens a file for writing from its start, or from its end with `append`; a new one is the user's own.
pub fn open_to_write(path: &Path, append: bool) -> Result<File, ModelError> {
    let mut options = OpenOptions::new();
    options.create(true).mode(0o600);
    if append {
        options.append(true)
    } else {
        options.write(true).truncate(true)
    };
    options.open(path).map_err(ModelError::io("write", path))
}

/// Holds the lock of a model until dropped, at the latest when the process ends.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "closing it is what unlocks")] File);

/// Takes the lock of a model.
pub fn lock(path: &Path, name: &str) -> Result<Lock, ModelError> {
    let file = open_to_write(path, true)?;
    match file.try_lock() {
        Ok(()) => Ok(Lock(file)),
        Err(TryLockError::WouldBlock) => Err(ModelError::Busy { name: name.to_owned() }),
        Err(TryLockError::Error(source)) => Err(ModelError::io("lock", path)(source)),
    }
}

/// Refuses when the disk of `folder` has less than `needs` bytes and the reserve.
pub fn check_space(folder: &Path, needs: u64) -> Result<(), ModelError> {
    let stat = rustix::fs::statvfs(folder).map_err(|e| ModelError::io("look at the disk of", folder)(e.into()))?;
    let has = stat.f_bavail.saturating_mul(stat.f_frsize);
    let needs = needs.saturating_add(DISK_RESERVE);
    if has < needs {
        return Err(ModelError::DiskFull { path: folder.to_owned(), needs, has });
    }
    Ok(())
}

/// Puts a finished file, whose content is on the disk already, in its place.
pub fn put(from: &Path, to: &Path) -> Result<(), ModelError> {
    let file = File::open(from).map_err(ModelError::io("open", from))?;
    file.set_permissions(fs::Permissions::from_mode(0o600)).map_err(ModelError::io("protect", from))?;
    file.sync_all().map_err(ModelError::io("sync", from))?;
    fs::rename(from, to).map_err(ModelError::io("put in place", to))?;
    let folder = to.parent().unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(ModelError::io("sync", folder))
}

/// Writes a small JSON file whole or not at all.
pub fn write_record(path: &Path, value: &impl serde::Serialize) -> Result<(), ModelError> {
    let mut text =
        serde_json::to_vec_pretty(value).map_err(|source| ModelError::Record { path: path.to_owned(), source })?;
    text.push(b'\n');
    let part = path.with_extension("json.part");
    open_to_write(&part, false)?.write_all(&text).map_err(ModelError::io("write", &part))?;
    put(&part, path)
}

/// Reads a small JSON file; none when it is not there.
pub fn read_record<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Option<T>, ModelError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(ModelError::io("read", path)(error)),
    };
    let mut text = Vec::new();
    file.take(RECORD_BYTES).read_to_end(&mut text).map_err(ModelError::io("read", path))?;
    serde_json::from_slice(&text).map(Some).map_err(|source| ModelError::Record { path: path.to_owned(), source })
}

/// Removes a file or folder that may not be there.
pub fn remove(path: &Path) -> Result<(), ModelError> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(ModelError::io("remove", path)(error)),
        _ => Ok(()),
    }
}

/// Size of a file; 0 when it is not there.
pub fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Reads to the end in pieces, telling each to `piece`, which may stop it with an error.
pub fn read_pieces<E>(
    from: &mut dyn Read,
    failed: impl FnOnce(io::Error) -> E,
    mut piece: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut buffer = vec![0; COPY_BUFFER];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => piece(&buffer[..n])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
}

/// SHA-256 of a file, in lower-case hexadecimal. `step` is told the bytes done, and may stop it.
pub fn sha256(path: &Path, mut step: impl FnMut(u64) -> Result<(), ModelError>) -> Result<String, ModelError> {
    let mut file = File::open(path).map_err(ModelError::io("read", path))?;
    let (mut hash, mut done) = (Sha256::new(), 0);
    read_pieces(&mut file, ModelError::io("read", path), |piece| {
        hash.update(piece);
        done += piece.len() as u64;
        step(done)
    })?;
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_by_one_until_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".m.lock");
        let held = lock(&path, "m").unwrap();
        assert!(matches!(lock(&path, "m"), Err(ModelError::Busy { .. })));
        drop(held);
        lock(&path, "m").unwrap();
    }

    #[test]
    fn too_little_space_is_told_with_both_numbers() {
        let folder = tempfile::tempdir().unwrap();
        check_space(folder.path(), 0).unwrap();
        let Err(ModelError::DiskFull { needs, has, .. }) = check_space(folder.path(), u64::MAX / 2) else {
            panic!("no disk is that large")
        };
        assert!(needs == u64::MAX / 2 + DISK_RESERVE && has < needs);
    }

    #[test]
    fn hashes_are_those_of_the_standard() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("abc");
        fs::write(&path, "abc").unwrap();
        let mut done = 0;
        let hash = sha256(&path, |n| {
            done = n;
            Ok(())
        });
        // FIPS 180-2, appendix B.1.
        assert_eq!(hash.unwrap(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(done, 3);
    }

    #[test]
    fn records_are_replaced_whole_and_belong_to_the_user() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.json");
        assert_eq!(read_record::<Vec<u32>>(&path).unwrap(), None);
        for value in [vec![1u32], vec![2, 3]] {
            write_record(&path, &value).unwrap();
            assert_eq!(read_record::<Vec<u32>>(&path).unwrap(), Some(value));
        }
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
        fs::write(&path, "{").unwrap();
        assert!(matches!(read_record::<Vec<u32>>(&path), Err(ModelError::Record { .. })));
    }
}
