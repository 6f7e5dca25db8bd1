//! A home of its own for each test, the real binary, and its daemons.
//!
//! Waiting is always for a condition, with a deadline. A daemon is ended by the id of its own process and reaped, also
//! when the test fails. No test downloads anything: models come from the folder that `SATCHEL_TEST_MODELS` names.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Once;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// The program under test.
pub const SATCHEL: &str = env!("CARGO_BIN_EXE_satchel");
/// The model that answers. It is small: tests ask it only what it knows how to find.
pub const WRITER: &str = "smollm2-135m-instruct";
/// The model that embeds.
pub const EMBEDDER: &str = "all-minilm-l6-v2";
/// Longest wait for anything that needs no model.
pub const SOON: Duration = Duration::from_secs(20);
/// Longest wait for an answer; a loaded machine of two cores may be slow.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// Waits until `look` gives something.
///
/// # Panics
/// After `most`, with what was waited for and what `look` last complained of.
pub fn eventually<T>(what: &str, most: Duration, mut look: impl FnMut() -> Result<T, String>) -> T {
    let end = Instant::now() + most;
    loop {
        match look() {
            Ok(found) => return found,
            Err(why) if Instant::now() >= end => panic!("{what}: not within {most:?}: {why}"),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// What a command printed and how it ended.
#[derive(Debug)]
pub struct Ran {
    /// The exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Ran {
    /// Standard output as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// The same, if it ended well.
    pub fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }
}

/// A home and a folder of documents, both gone when it is dropped, daemons first.
pub struct Home {
    dir: TempDir,
    /// The state of satchel.
    pub path: PathBuf,
    /// A folder for documents.
    pub docs: PathBuf,
}

impl Home {
    /// A home with both test models, in use.
    pub fn new() -> Self {
        let home = Self::bare();
        home.install(&[WRITER, EMBEDDER]);
        for model in [WRITER, EMBEDDER] {
            home.run(["model", "use", model]).ok();
        }
        home
    }

    /// A home that searches by words alone: no model is there and none can be had.
    pub fn bare() -> Self {
        adopt_orphans();
        let dir = tempfile::Builder::new().prefix("satchel-e2e-").tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (path, docs) = (root.join("home"), root.join("docs"));
        fs::create_dir(&docs).unwrap();
        Self { dir, path, docs }
    }

    /// Puts models into the home, by hard link where that can be.
    pub fn install(&self, names: &[&str]) {
        let to = self.path.join("models");
        fs::create_dir_all(&to).unwrap();
        for file in names.iter().flat_map(|name| [format!("{name}.gguf"), format!("{name}.json")]) {
            let from = test_models().join(&file);
            assert!(
                from.is_file(),
                "the test model {from:?} is missing: run the tests with .ci/test.sh, which fetches it"
            );
            if fs::hard_link(&from, to.join(&file)).is_err() {
                std::os::unix::fs::symlink(&from, to.join(&file)).unwrap();
            }
        }
    }

    /// Writes a document, with the folders above it.
    pub fn write(&self, name: impl AsRef<Path>, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.docs.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Where the daemon's socket is.
    pub fn socket(&self) -> PathBuf {
        self.path.join("run/satchel.sock")
    }

    /// A place in the test's own folder, beside the home and the documents.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.docs.with_file_name(name)
    }

    /// The program with this home; nothing of the caller's environment decides where it looks, and it reaches no
    /// place to download from.
    pub fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(SATCHEL);
        command.arg("--home").arg(&self.path).args(args).stdin(Stdio::null());
        for variable in ["SATCHEL_SOCKET", "SATCHEL_MODEL_MIRROR", "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "SATCHEL_PYTHON"]
        {
            command.env_remove(variable);
        }
        command.env("HF_ENDPOINT", "http://127.0.0.1:9").env("PATH", self.dir.path());
        command
    }

    /// Runs a command to its end.
    pub fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Ran {
        finish(self.command(args))
    }

    /// Starts a daemon that watches the folder of documents, and waits until all is indexed.
    pub fn daemon(&self) -> Daemon {
        let daemon = self.serve(["--in".as_ref(), self.docs.as_os_str()]);
        daemon.settled();
        daemon
    }

    /// Starts a daemon and waits until it answers.
    pub fn serve<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Daemon {
        let mut command = self.command(["serve"]);
        command.args(args);
        self.start(command)
    }

    /// Starts a prepared daemon and waits until it answers.
    pub fn start(&self, mut command: Command) -> Daemon {
        fs::create_dir_all(&self.path).unwrap();
        let log = self.path.join("test.log");
        let file = fs::File::options().create(true).append(true).open(&log).unwrap();
        let child = command.stdout(Stdio::null()).stderr(file).spawn().unwrap();
        let mut daemon = Daemon { child, socket: self.socket(), log };
        eventually("the daemon answers", SOON, || {
            if let Some(status) = daemon.child.try_wait().unwrap() {
                panic!("the daemon ended ({status}): {}", daemon.log());
            }
            UnixStream::connect(&daemon.socket).map(drop).map_err(|e| e.to_string())
        });
        daemon
    }
}

impl Drop for Home {
    /// A daemon that a command left in the background is ended too.
    fn drop(&mut self) {
        let lock = self.path.join("run/satchel.sock.lock");
        let Some(pid) = fs::read_to_string(lock).ok().and_then(|text| text.trim().parse::<i32>().ok()) else { return };
        let is_ours = fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| {
            line.windows(self.path.as_os_str().len()).any(|w| w == self.path.as_os_str().as_encoded_bytes())
        });
        if is_ours {
            signal(pid, libc::SIGTERM);
            if !reaped(pid, SOON) {
                signal(pid, libc::SIGKILL);
                reaped(pid, SOON);
            }
        }
    }
}

/// A daemon that runs until it is dropped.
pub struct Daemon {
    child: Child,
    /// Its socket.
    pub socket: PathBuf,
    log: PathBuf,
}

impl Daemon {
    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it wrote.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Ends it at once, as a power cut would.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it in order.
    pub fn stop(mut self) {
        signal(self.child.id() as i32, libc::SIGTERM);
        let status = eventually("the daemon ends", SOON, || self.child.try_wait().unwrap().ok_or_else(|| self.log()));
        assert!(status.success(), "{status}: {}", self.log());
    }

    /// A GET.
    pub fn get(&self, target: &str) -> Value {
        self.call("GET", target, None)
    }

    /// A POST.
    pub fn post(&self, target: &str, body: Value) -> Value {
        self.call("POST", target, Some(body))
    }

    /// A request that must succeed.
    fn call(&self, method: &str, target: &str, body: Option<Value>) -> Value {
        let (status, reply) = self.http(method, target, body.as_ref());
        assert_eq!(status, 200, "{method} {target} {body:?}: {reply}\n{}", self.log());
        reply
    }

    /// A request and its status.
    pub fn http(&self, method: &str, target: &str, body: Option<&Value>) -> (u16, Value) {
        let mut reply = self.send(method, target, body);
        let mut text = String::new();
        reply.body.read_to_string(&mut text).unwrap();
        (reply.status, serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text:?}")))
    }

    /// A request whose reply is read line by line.
    pub fn stream(&self, method: &str, target: &str, body: Option<&Value>) -> Events {
        let reply = self.send(method, target, body);
        assert_eq!(reply.status, 200, "{method} {target}: {}", self.log());
        Events { lines: reply.body }
    }

    fn send(&self, method: &str, target: &str, body: Option<&Value>) -> Response {
        let mut socket = connect(&self.socket);
        let body = body.map(Value::to_string).unwrap_or_default();
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: satchel\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        socket.write_all(format!("{head}{body}").as_bytes()).unwrap();
        Response::read(socket)
    }

    /// A JSON-RPC call: the lines up to its result or error.
    pub fn rpc(&self, method: &str, params: Value) -> Vec<Value> {
        let mut socket = connect(&self.socket);
        let call = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        socket.write_all(format!("{call}\n").as_bytes()).unwrap();
        socket.shutdown(std::net::Shutdown::Write).unwrap();
        let lines = BufReader::new(socket).lines();
        lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect()
    }

    /// Waits until every root is ready, and no file is pending.
    pub fn settled(&self) {
        eventually("the index is up to date", PATIENCE, || {
            let roots = self.get("/v1/roots");
            let ready = roots["roots"].as_array().unwrap().iter().all(|r| r["state"] == "ready" && r["pending"] == 0);
            if ready { Ok(()) } else { Err(format!("{roots} {}", self.get("/v1/status"))) }
        });
    }

    /// Paths of the documents that hold a word, those that only repeat a better hit included.
    pub fn holding(&self, word: &str) -> Vec<String> {
        let found = self.post("/v1/search", json!({"query": word, "mode": "lexical", "k": 200}));
        let mut paths = Vec::new();
        for hit in found["hits"].as_array().unwrap() {
            if hit["text"].as_str().unwrap().contains(word) {
                let copies = hit["also"].as_array().into_iter().flatten();
                paths.extend([&hit["path"]].into_iter().chain(copies).map(|p| p.as_str().unwrap().to_owned()));
            }
        }
        paths.sort();
        paths
    }

    /// Waits until exactly these documents hold a word.
    pub fn expect(&self, word: &str, paths: &[&Path]) {
        let mut wanted: Vec<String> = paths.iter().map(|p| p.to_str().unwrap().to_owned()).collect();
        wanted.sort();
        eventually(&format!("{word} is found in {wanted:?}"), SOON, || {
            let found = self.holding(word);
            if found == wanted { Ok(()) } else { Err(format!("found in {found:?}\n{}", self.log())) }
        });
    }

    /// The entry of a file in the list of files.
    pub fn file(&self, path: &Path) -> Option<Value> {
        let all = self.files();
        all.into_iter().find(|f| f["path"] == path.to_str().unwrap())
    }

    /// All known files.
    pub fn files(&self) -> Vec<Value> {
        let reply = self.get("/v1/files");
        assert!(reply.get("next").is_none(), "more files than one page");
        reply["files"].as_array().unwrap().clone()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        signal(self.child.id() as i32, libc::SIGTERM);
        let end = Instant::now() + SOON;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() >= end {
                let _ = self.child.kill();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The head of a response, read; its body, to be read.
struct Response {
    status: u16,
    body: BufReader<Box<dyn Read>>,
}

impl Response {
    fn read(socket: UnixStream) -> Self {
        let mut reader = BufReader::new(socket);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let status =
            line.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or_else(|| panic!("no status: {line:?}"));
        let mut chunked = false;
        loop {
            line.clear();
            reader.read_line(&mut line).unwrap();
            if line.trim().is_empty() {
                break;
            }
            chunked |= line.trim().eq_ignore_ascii_case("transfer-encoding: chunked");
        }
        let body: Box<dyn Read> = if chunked { Box::new(Chunked { reader, left: 0 }) } else { Box::new(reader) };
        Self { status, body: BufReader::new(body) }
    }
}

/// A body in chunks (RFC 9112, section 7.1).
struct Chunked {
    reader: BufReader<UnixStream>,
    left: usize,
}

impl Read for Chunked {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while self.left == 0 {
            let mut line = String::new();
            if self.reader.read_line(&mut line)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            match line.trim() {
                "" => continue, // The end of the chunk before.
                size => self.left = usize::from_str_radix(size, 16).map_err(std::io::Error::other)?,
            }
            if self.left == 0 {
                return Ok(0);
            }
        }
        let most = buffer.len().min(self.left);
        let read = self.reader.read(&mut buffer[..most])?;
        self.left -= read;
        Ok(read)
    }
}

/// Events of a stream as they come. Dropping it closes the connection.
pub struct Events {
    lines: BufReader<Box<dyn Read>>,
}

impl Iterator for Events {
    type Item = Value;

    /// The next event; none at the end of the stream.
    fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        match self.lines.read_line(&mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"))),
        }
    }
}

/// Opens a socket whose reads do not hang.
pub fn connect(socket: &Path) -> UnixStream {
    let stream = UnixStream::connect(socket).unwrap_or_else(|e| panic!("{socket:?}: {e}"));
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Runs a command to its end, at most for as long as an answer may take.
pub fn finish(mut command: Command) -> Ran {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let read = |pipe: Option<Box<dyn Read + Send>>| {
        let mut pipe = pipe.unwrap();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            pipe.read_to_end(&mut bytes).unwrap();
            String::from_utf8(bytes).unwrap()
        })
    };
    let out = read(child.stdout.take().map(|p| Box::new(p) as _));
    let err = read(child.stderr.take().map(|p| Box::new(p) as _));
    let end = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() >= end {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{command:?} did not end: {:?} {:?}", out.join(), err.join());
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    Ran { code: status.code(), out: out.join().unwrap(), err: err.join().unwrap() }
}

/// The folder of the test models.
pub fn test_models() -> PathBuf {
    let folder = std::env::var_os("SATCHEL_TEST_MODELS");
    PathBuf::from(
        folder.expect("SATCHEL_TEST_MODELS is not set: run the tests with .ci/test.sh, which fetches the models"),
    )
}

/// Sends a signal to a process that this test started.
pub fn signal(pid: i32, number: i32) {
    // SAFETY: kill takes two numbers and touches no memory of ours.
    unsafe { libc::kill(pid, number) };
}

/// Waits for the end of a process that is our child, by birth or by adoption.
pub fn reaped(pid: i32, most: Duration) -> bool {
    let end = Instant::now() + most;
    while Instant::now() < end {
        // SAFETY: a null status is allowed; nothing else is a pointer.
        let ended = unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) };
        if ended != 0 {
            return true; // Ended now, or no child of ours (any more).
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

/// A daemon started by a command becomes an orphan when the command ends: we take its place as the parent, so that it
/// can be waited for.
fn adopt_orphans() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: this prctl takes a number and sets a flag of our process.
        #[cfg(target_os = "linux")]
        unsafe {
            libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
        }
    });
}

/// Whether we may do what only root may.
pub fn is_root() -> bool {
    // SAFETY: geteuid takes nothing and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// The permission bits of a path.
pub fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// A seeded generator of numbers (xorshift64*): the same seed gives the same run.
pub struct Random(u64);

impl Random {
    /// From a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % n
    }
}
