#!/usr/bin/env python3
"""Reading and indexing words beside recollindex: whole processes, each into an empty index, alternating, medians.

  beside_recoll.py FOLDER BUILD [--rounds 3]

FOLDER has one folder for each type. BUILD is the built `index/examples/build.rs`, which reads in the jail and indexes words
(no embedder, as recollindex has none). Needs Debian's recollcmd, python3-recoll and its usual helpers (poppler-utils, antiword, catdoc,
unrtf, xsltproc, python3-lxml and the like). If FOLDER has an expected.tsv (path, kind, phrase), the `contains` phrases that recoll has in
its texts are counted too; ours are counted through the daemon by the extraction eval.
"""
import argparse, csv, statistics, subprocess, sys, tempfile, time, unicodedata
from collections import defaultdict
from pathlib import Path

# No file is skipped by its name, or the comparison would be of skip lists.
# Its readers are scripts of the system's Python, and say nothing without a UTF-8 locale.
ENV = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "HOME": "/nonexistent"}
CONF = "topdirs = {}\nskippedNames =\nnoContentSuffixes =\ndefaultcharset = UTF-8\n"


def recoll(folder, work):
    (work / "recoll.conf").write_text(CONF.format(folder), encoding="utf8")
    return seconds(["recollindex", "-c", str(work), "-z"], env=ENV)


def seconds(command, env=None):
    start = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=600, env=env)
    if done.returncode:
        sys.exit(f"{command[0]} ended with {done.returncode}: {done.stderr[-500:].decode(errors='replace')}")
    return time.monotonic() - start


def beside(folder, build, rounds):
    """Medians of seconds: ours, recoll's."""
    ours, theirs = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as work:
            ours.append(seconds([build, str(folder), work]))
        with tempfile.TemporaryDirectory() as work:
            theirs.append(recoll(folder, Path(work)))
    return statistics.median(ours), statistics.median(theirs)


def norm(text):
    return " ".join(unicodedata.normalize("NFKC", text).replace("\u00ad", "").casefold().split())


def phrases(folder):
    """For each type: phrases that recoll has, and all."""
    with open(folder / "expected.tsv", encoding="utf8", newline="") as f:
        rows = [r for r in csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE) if r["kind"] == "contains"]
    with tempfile.TemporaryDirectory() as work:
        recoll(folder, Path(work))
        try:
            from recoll import recoll as api
        except ImportError:
            return print("python3-recoll is missing: no phrases are counted", file=sys.stderr) or {}
        query = api.connect(confdir=work).query()
        query.execute("mime:*", stemming=0, fetchtext=True)
        texts = defaultdict(str)
        for doc in query:
            said = [doc.text] + [getattr(doc, key, "") for key in ("title", "author", "keywords")]
            texts[doc.url.removeprefix("file://")] += " " + " ".join(filter(None, said))
    found = defaultdict(lambda: [0, 0])
    for row in rows:
        kind = found[row["path"].split("/")[0]]
        kind[0] += norm(row["phrase"]) in norm(texts[str(folder / row["path"])])
        kind[1] += 1
    return found


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder", type=lambda f: Path(f).resolve())
    p.add_argument("build")
    p.add_argument("--rounds", type=int, default=3)
    args = p.parse_args()
    found = phrases(args.folder) if (args.folder / "expected.tsv").exists() else {}
    print("| type | files | satchel, s | recollindex, s | phrases recoll has |\n|---|---|---|---|---|")
    for folder in sorted(f for f in args.folder.iterdir() if f.is_dir()) + [args.folder]:
        files = sum(f.is_file() for f in folder.rglob("*"))
        ours, theirs = beside(folder, args.build, args.rounds)
        whole = folder == args.folder
        has = [sum(v[i] for v in found.values()) for i in (0, 1)] if whole else found.get(folder.name, (0, 0))
        print(f"| {'all' if whole else folder.name} | {files} | {ours:.2f} | {theirs:.2f} | {has[0]}/{has[1]} |", flush=True)


if __name__ == "__main__":
    main()
