//! Where satchel keeps its things: one home folder with everything in it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use satchel_ipc::{Code, ErrorBody, default_path};

/// The places of one home. Nothing here touches the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// The folder of everything below.
    pub home: PathBuf,
    /// Whether the home was named with `--home`, so that a daemon started for it is told so too.
    pub named: bool,
    /// The daemon's socket; under a named home unless `SATCHEL_SOCKET` is set.
    pub socket: PathBuf,
    /// The folder of the index.
    pub index: PathBuf,
    /// The folder of the models.
    pub models: PathBuf,
    /// The file of the person's own passwords, tried on locked files.
    pub passwords: PathBuf,
    /// What a daemon that was started in the background writes.
    pub log: PathBuf,
}

impl Paths {
    /// The places for `--home home`, or the platform's own: `$XDG_DATA_HOME/satchel`, else
    /// `~/Library/Application Support/satchel` on macOS, else `~/.local/share/satchel` (Termux too).
    ///
    /// # Errors
    /// `bad_request` when there is neither a home nor a variable to find one by, or it cannot be made absolute.
    pub fn new(home: Option<&Path>, env: impl Fn(&str) -> Option<OsString>) -> Result<Self, ErrorBody> {
        let set = |name| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let folder = match home {
            Some(home) => home.to_owned(),
            None => default_home(&set)?,
        };
        let folder = std::path::absolute(&folder)
            .map_err(|error| ErrorBody::bad_request(format!("the home {folder:?} cannot be used: {error}")))?;
        let socket = match (home, set("SATCHEL_SOCKET")) {
            (Some(_), None) => folder.join("run/satchel.sock"),
            _ => default_path(&env),
        };
        let socket = std::path::absolute(&socket)
            .map_err(|error| ErrorBody::bad_request(format!("the socket {socket:?} cannot be used: {error}")))?;
        Ok(Self {
            named: home.is_some(),
            socket,
            index: folder.join("index"),
            models: folder.join("models"),
            passwords: folder.join("passwords"),
            log: folder.join("daemon.log"),
            home: folder,
        })
    }
}

fn default_home(set: &impl Fn(&'static str) -> Option<PathBuf>) -> Result<PathBuf, ErrorBody> {
    // The base directory specification has relative values ignored.
    if let Some(data) = set("XDG_DATA_HOME").filter(|data| data.is_absolute()) {
        return Ok(data.join("satchel"));
    }
    let user = set("HOME").ok_or_else(|| {
        ErrorBody::new(Code::BadRequest, "neither HOME nor XDG_DATA_HOME is set").with_hint("name a folder with --home")
    })?;
    let data = if cfg!(target_os = "macos") { "Library/Application Support" } else { ".local/share" };
    Ok(user.join(data).join("satchel"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(home: Option<&str>, variables: &[(&str, &str)]) -> Result<Paths, ErrorBody> {
        let find = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value));
        Paths::new(home.map(Path::new), find)
    }

    #[test]
    fn a_named_home_holds_everything() {
        let paths = paths(Some("/h"), &[("XDG_RUNTIME_DIR", "/r"), ("HOME", "/u")]).unwrap();
        for path in [&paths.socket, &paths.index, &paths.models, &paths.log] {
            assert!(path.starts_with("/h"), "{path:?}");
        }
        assert!(paths.named);
    }

    #[test]
    fn the_socket_variable_wins_over_all() {
        let variables = [("SATCHEL_SOCKET", "/s/x.sock"), ("HOME", "/u")];
        assert_eq!(paths(Some("/h"), &variables).unwrap().socket, Path::new("/s/x.sock"));
        assert_eq!(paths(None, &variables).unwrap().socket, Path::new("/s/x.sock"));
    }

    #[test]
    fn without_a_home_the_platform_says() {
        let at = |variables: &[(&str, &str)]| paths(None, variables).unwrap();
        assert_eq!(at(&[("XDG_DATA_HOME", "/d"), ("HOME", "/u")]).home, Path::new("/d/satchel"));
        assert_eq!(at(&[("XDG_RUNTIME_DIR", "/r"), ("HOME", "/u")]).socket, Path::new("/r/satchel/satchel.sock"));
        if cfg!(target_os = "linux") {
            assert_eq!(at(&[("XDG_DATA_HOME", "relative"), ("HOME", "/u")]).home, Path::new("/u/.local/share/satchel"));
        }
        assert_eq!(paths(None, &[]).unwrap_err().code, Code::BadRequest);
    }

    #[test]
    fn relative_places_are_made_absolute() {
        let paths = paths(Some("h"), &[("SATCHEL_SOCKET", "s.sock")]).unwrap();
        assert!(paths.home.is_absolute() && paths.home.ends_with("h"));
        assert!(paths.socket.is_absolute() && paths.socket.ends_with("s.sock"));
    }
}
