#!/usr/bin/env python3
"""Questions in one language over documents in another, through a running daemon.

  cross_language.py EVAL [--set debian_faq] [--queries en] [--corpus zh] [--modes vector,hybrid] [--socket SOCK] [--workdir DIR]

EVAL is the folder of the retrieval evaluation (`retrieval.py` and its sets). In the sets it is meant for, a document has the same
id in every language, so the right answer to a question of one language is known in the other. Queries whose document the other
language lacks are left out.
"""
import argparse, sys
from pathlib import Path


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("eval", type=lambda f: Path(f).resolve())
    p.add_argument("--set", default="debian_faq")
    p.add_argument("--queries", default="en")
    p.add_argument("--corpus", default="zh")
    p.add_argument("--modes", default="vector,hybrid")
    p.add_argument("--socket")
    p.add_argument("--workdir", help="where the document files go; kept, so a second run finds them indexed")
    p.add_argument("--timeout", type=float, default=600)
    args = p.parse_args()
    sys.path.insert(0, str(args.eval))
    import _client as c
    from retrieval import MEASURES, measure

    args.socket = args.socket or c.default_socket()
    daemon, _ = c.connect(args)
    base = args.eval / "retrieval" / args.set
    qrels = {}
    for line in (base / args.queries / "qrels.tsv").read_text(encoding="utf8").splitlines()[1:]:
        query, document, score = line.split("\t")
        qrels.setdefault(query, {})[document] = int(score)
    with c.Workdir(daemon, args.workdir) as work:
        corpus = c.Corpus(f"{args.set}/{args.corpus}", work.path, "number")
        work.index(corpus, args.timeout)
        here = set(corpus.paths.values())
        queries = [q for q in c.load_jsonl(base / args.queries / "queries.jsonl") if here & qrels.get(q["_id"], {}).keys()]
        rows = []
        for mode in args.modes.split(","):
            total = dict.fromkeys(MEASURES, 0.0)
            for q in queries:
                hits = daemon.search(q["text"], 30, mode, corpus.folder)["hits"]
                ranked = list(dict.fromkeys(corpus.id_of(h["path"]) for h in hits))[:10]
                for name, value in measure(ranked, qrels[q["_id"]]).items():
                    total[name] += value
            rows.append([f"{args.queries} over {args.corpus}", mode, len(queries), *[f"{total[m] / len(queries):.4f}" for m in MEASURES]])
    c.table(["languages", "mode", "q", *MEASURES], rows)


if __name__ == "__main__":
    sys.exit(main())
