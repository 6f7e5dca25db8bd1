#!/usr/bin/env python3
"""What indexing a folder takes: time, memory, what the processor did, and whether the remaining time that was told was right.

  indexing.py SATCHEL HOME FOLDER [--edits 20] [--every 10]

SATCHEL is the built program; HOME a home with its models and no index (nothing is fetched where the embedder is there); FOLDER is
indexed by a daemon of this script's own. Prints

- seconds and passages a second, and the largest resident sizes of the daemon and of its reader (VmHWM);
- the share of the samples of `perf` that lie in the engine, beside those in the index, in SQLite and elsewhere (where perf is there);
- the remaining time told beside the true one, every so many seconds, and the worst error after the first minute;
- with --edits: seconds from writing a small file until a search by its words, and one by meaning, finds it, so often.
"""
import argparse, http.client, json, os, re, shutil, signal, socket, statistics, subprocess, sys, tempfile, threading, time
from collections import Counter
from pathlib import Path


class Daemon:
    def __init__(self, path):
        self.path = path

    def open(self, timeout=60):
        connection = http.client.HTTPConnection("localhost", timeout=timeout)
        connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.sock.settimeout(timeout)
        connection.sock.connect(self.path)
        return connection

    def call(self, method, route, body=None):
        connection = self.open()
        connection.request(method, route, body and json.dumps(body), {"Content-Type": "application/json"} if body else {})
        return json.load(connection.getresponse())

    def finds(self, word, mode, path):
        hits = self.call("POST", "/v1/search", {"query": word, "k": 5, "mode": mode})["hits"]
        return any(h["path"] == str(path) for h in hits)


def follow(daemon, told):
    """Collects the remaining times that events tell: when, and how many seconds."""
    try:
        connection = daemon.open(timeout=3600)
        connection.request("GET", "/v1/events")
        for line in connection.getresponse():
            event = json.loads(line)
            progress = event.get("progress") or (event if event.get("event") == "progress" else None)
            if progress and "files_total" in progress:
                left = progress.get("remaining_ms")
                told.append((time.monotonic(), left and left / 1000, progress))
    except (OSError, ValueError, http.client.HTTPException):
        pass  # the daemon ended


def peaks(pid, peak):
    """VmHWM in KiB of the process and, as far as it is there, of its child that reads files."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    tasks = [c for t in Path(f"/proc/{pid}/task").iterdir() for c in (t / "children").read_text().split()] if children.exists() else []
    for name, process in [("daemon", pid), *(("reader", c) for c in tasks)]:
        try:
            found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process}/status").read_text())
        except OSError:
            continue
        peak[name] = max(peak.get(name, 0), int(found[1]) if found else 0)


def where(data):
    """Shares of the samples by part of the program, in percent."""
    report = ["perf", "report", "-i", data, "--stdio", "-q", "--sort", "symbol", "-t", "|"]
    out = subprocess.run(report, capture_output=True, text=True, errors="replace").stdout
    share = Counter()
    for line in out.splitlines():
        found = re.match(r"\s*([\d.]+)%\s*\|\s*(.*)", line)
        if not found:
            continue
        parts = {"engine": "satchel_engine", "index": "satchel_index", "packing texts": "brotli", "SQLite": "sqlite3|fts5|vdbe|pager|btree"}
        part = next((name for name, mark in parts.items() if re.search(mark, found[2], re.I)), "other")
        share[part] += float(found[1])
    return share


def edits(daemon, folder, times):
    took = {"lexical": [], "hybrid": []}
    for n in range(times):
        path, word = folder / "edited.md", f"qzx{os.getpid()}v{n}"
        start = time.monotonic()
        path.write_text(f"# A small note\n\nThe word of the day is {word}, and nothing else is new.\n")
        for mode in took:
            # By meaning, the passage is there once its vector is: the lexical half finds it before, so it is asked alone.
            asked = "vector" if mode == "hybrid" else mode
            while not daemon.finds(f"the word of the day is {word}", asked, path):
                time.sleep(0.01)
                if time.monotonic() - start > 30:
                    sys.exit(f"edit {n} was not found within 30 s")
            took[mode].append(time.monotonic() - start)
        time.sleep(1)
        path.unlink()
        time.sleep(1)
    for mode, seconds in took.items():
        print(f"found by {'meaning' if mode == 'hybrid' else 'words'} after a save: median {statistics.median(seconds):.2f} s, worst {max(seconds):.2f} s of {times}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("satchel", type=lambda f: str(Path(f).resolve()))
    p.add_argument("home", type=lambda f: Path(f).resolve())
    p.add_argument("folder", type=lambda f: Path(f).resolve())
    p.add_argument("--edits", type=int, default=0)
    p.add_argument("--every", type=float, default=10, help="seconds between two lines of told and true time")
    args = p.parse_args()
    run = Path(tempfile.mkdtemp(prefix="satchel-indexing-"))
    path = str(run / "s")
    process = subprocess.Popen([args.satchel, "serve", "--home", str(args.home)], env={**os.environ, "SATCHEL_SOCKET": path})
    daemon, told, peak = Daemon(path), [], {}
    try:
        while not Path(path).exists() or not daemon.call("GET", "/v1/status").get("embedder"):
            time.sleep(0.2)
        measure(daemon, process.pid, args, run, told, peak)
        if args.edits:
            edits(daemon, args.folder, args.edits)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        shutil.rmtree(run, ignore_errors=True)


def measure(daemon, pid, args, run, told, peak):
    before = daemon.call("GET", "/v1/status")["index"]
    threading.Thread(target=follow, args=(daemon, told), daemon=True).start()
    time.sleep(0.2)
    perf = None
    if shutil.which("perf"):
        perf = subprocess.Popen(["perf", "record", "-q", "-e", "cpu-clock", "-F", "49", "-p", str(pid), "-o", str(run / "perf")], stderr=subprocess.DEVNULL)
    start = time.monotonic()
    daemon.call("POST", "/v1/roots", {"path": str(args.folder)})
    while True:
        time.sleep(0.5)
        peaks(pid, peak)
        status = daemon.call("GET", "/v1/status")
        if status["index"]["documents"] > before["documents"] and status["index"]["pending"] == 0 and status["index_lag_ms"] == 0:
            break
    end = time.monotonic()
    if perf:
        perf.send_signal(signal.SIGINT)
        perf.wait(30)
    index, seconds = status["index"], end - start
    passages = index["passages"] - before["passages"]
    stat = Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()
    used = (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")
    print(f"{index['documents'] - before['documents']} files, {passages} passages in {seconds:.1f} s: {passages / seconds:.1f} passages/s; index {index['bytes']} bytes")
    print(f"peak resident: daemon {peak.get('daemon', 0) // 1024} MiB, reader {peak.get('reader', 0) // 1024} MiB; the daemon used {used:.0f} s of processor")
    if perf and (run / "perf").exists():
        print("samples: " + ", ".join(f"{part} {share:.1f} %" for part, share in where(str(run / "perf")).most_common()))
    due, worst = start, 0.0
    for at, left, progress in told:
        truth = end - at
        if left is None or truth <= 0 or at < start:
            continue
        if at >= start + 60 and truth > 5:
            worst = max(worst, abs(left - truth) / truth)
        if at >= due:
            due = at + args.every
            print(f"after {at - start:6.1f} s: {progress['files_done']} of {progress['files_total']} files, told {left:6.1f} s, true {truth:6.1f} s ({left / truth - 1:+.0%})")
    print(f"worst error of the remaining time after the first minute, but for the last 5 s: {worst:.0%}")


if __name__ == "__main__":
    main()
