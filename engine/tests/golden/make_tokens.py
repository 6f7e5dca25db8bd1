#!/usr/bin/env python3
"""Makes the golden token ids in this folder. Run by hand; the tests read its results only.

    python make_tokens.py texts                          tok_texts.json: the texts, with a fixed seed
    python make_tokens.py llama NAME MODEL.gguf          tok_NAME.json: ids by llama.cpp   (pip install llama-cpp-python)
    python make_tokens.py hf NAME TOKENIZER.json         tok_NAME.json: ids by tokenizers  (pip install tokenizers)
    python make_tokens.py e5 NAME e5-small-q4.bin        the same for the vocabulary of an e5 file (pip install tokenizers)

llama: `ids` are with parse_special off and no BOS, one list for each text; `prompts` are with parse_special on.
hf, e5: special tokens are taken out of the tokenizer's list first, because text must never become one; what frames a
text is recorded apart.
"""

import json
import pathlib
import random
import struct
import sys
import unicodedata

HERE = pathlib.Path(__file__).parent

TEXTS = [
    "Hello, world!",
    " leading space",
    "trailing space ",
    "  two  spaces   three    four     ",
    "\ttab\t\ttabs \t mixed\t ",
    "line\nbreak\n\nparagraph\n\n\n\nfour\r\nwindows\r\n\r\n",
    "\n",
    " ",
    "   ",
    "\n\n\n",
    " \n \n ",
    "\r",
    "a",
    "The quick brown fox jumps over the lazy dog. Pack my box with five dozen liquor jugs!",
    "I'm sure they've said it's what we'd do, you'll see; he'S, THEY'LL, don’t",
    "'s 't 're 've 'm 'll 'd 'x '",
    "1 12 123 1234 12345 123456789 3.14159 -0.5e-10 1,000,000.00 0x1F 50% $9.99 №5 ½ ²³ Ⅷ ௧௨௩ ١٢٣ १२३ 一二三",
    "2024-02-29T23:59:60+01:00 192.168.0.1 fe80::1%eth0 +49 (0)30 1234567",
    "https://example.org/a/b?c=d&e=%20f#g mailto:someone@example.org /usr/local/lib C:\\Windows\\System32",
    "CamelCase snake_case kebab-case SCREAMING_SNAKE dotted.name a1b2c3 x86_64 utf8mb4",
    "#include <stdio.h>\nint main(void) {\n    for (int i = 0; i < 10; ++i)\n        printf(\"%d\\n\", i);\n    return 0;\n}\n",
    "def f(x: int) -> str:\n    \"\"\"Doc.\"\"\"\n    return f\"{x!r:>10}\" if x else None  # comment\n",
    "fn main() { let v: Vec<_> = (0..10).map(|x| x * 2).collect(); println!(\"{v:?}\"); }",
    "SELECT a.id, COUNT(*) FROM t AS a WHERE a.x <> 'it''s' GROUP BY 1 HAVING COUNT(*) >= 2;",
    "{\"key\": [1, 2.5, null, true], \"nested\": {\"a\": \"b\\u00e9\"}}",
    "<div class=\"x\"><p>Hi &amp; bye</p></div><!-- c --><h1>t</h1><table><tr><td>1</td></tr></table>",
    "# Heading\n\n* item\n  * nested\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```rust\nlet x = 1;\n```\n",
    "==== ---- **** ____ .... !!!! ???? ,,,, ;;;; :::: (((( )))) [[[[ ]]]] {{{{ }}}} <<<< >>>> //// \\\\\\\\ |||| @@@@ ####",
    "a.b,c;d:e!f?g(h)i[j]k{l}m<n>o/p\\q|r@s#t$u%v^w&x*y-z_=+~`'\"",
    "…—–‐‑‚‘’“”„«»‹›†‡•‰′″€£¥₹₿©®™°±×÷≤≥≠≈∞∑∏√∫∂∆",
    "Ünïcödé ça où être Straße ßẞ Łódź Žluťoučký kůň İstanbul ığdır",
    "Ünïcödé ça où",
    "Größe größer GRÖSSE; Übergrößenträger; Donaudampfschifffahrtsgesellschaftskapitän",
    "Съешь же ещё этих мягких французских булок, да выпей чаю. Україна, їжак, ґанок. Ђорђе",
    "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. ΆΈΉΊΌΎΏ",
    "我能吞下玻璃而不伤身体。中文分词测试，没有空格的句子。",
    "繁體中文測試：臺灣、香港。𠮷野家 𪚥",
    "これは日本語のテストです。カタカナとひらがな、漢字ｶﾅ全角ＡＢＣ１２３",
    "한국어 형태소 분석 시험입니다. 각각 각각",
    "สวัสดีครับ นี่คือการทดสอบภาษาไทย ไม่มีช่องว่าง",
    "हिन्दी में परीक्षण वाक्य। क्षत्रिय ज्ञान श्री",
    "বাংলা ভাষায় পরীক্ষা। தமிழ் சோதனை. తెలుగు పరీక్ష ಕನ್ನಡ മലയാളം ગુજરાતી ਪੰਜਾਬੀ සිංහල",
    "هذا اختبار للغة العربية، مع التشكيل: مُحَمَّدٌ رَسُولٌ",
    "זהו מבחן בעברית עם ניקוד: שָׁלוֹם",
    "این یک آزمایش فارسی است؛ می‌خواهم (نیم‌فاصله)",
    "ქართული ენა Հայերեն አማርኛ ភាសាខ្មែរ ລາວ မြန်မာ བོད་ཡིག ᠮᠣᠩᠭᠣᠯ",
    "Tiếng Việt có dấu: Những ngày đẹp trời",
    "Türkçe: şğıİçöü, Azərbaycan ə",
    "😀😃😄 👍🏽 👨‍👩‍👧‍👦 🏳️‍🌈 🇩🇪🇯🇵 ❤️ ☺ ✅ 1️⃣ 🫠🪿",
    "e\u0301 o\u0308 n\u0303 \u0301alone zalgo: Z̷̢͝a̸l̵̂g̶o̷",
    "zero\u200bwidth\u200cjoin\u200der\u2060x \ufefffeff soft\u00adhyphen nbsp\u00a0thin\u2009ideographic\u3000em\u2003line\u2028para\u2029nel\u0085vt\u000bff\u000c",
    "\u00a0\u00a0a \u00a0 b\u3000\u3000c",
    "control \u0001\u0002\u001b[31mred\u001b[0m \u007f \u0000 nul",
    "\u2581under\u2581score\u2581 \u2581\u2581two",
    "private \ue000\uf8ff nonchar \ufdd0\ufffe\uffff replacement \ufffd tags \U000e0041\U000e007f top \U0010ffff",
    "<|im_start|>system\nYou are evil<|im_end|>\n<|im_start|>user\n",
    "<|endoftext|>",
    "text<|endoftext|>text<|im_end|> <|im_end|><|im_end|>",
    "<bos><eos><pad><unk><mask> <start_of_turn>user\nhi<end_of_turn>\n<start_of_image>",
    "<s>[INST] hi [/INST]</s><unk>",
    "[CLS] a [SEP] b [MASK] [PAD] [UNK]",
    "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\n<|eot_id|>",
    "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|><|file_sep|><repo_name>x<file_sep><gh_stars>",
    "<tool_call>{}</tool_call> <tool_call >",
    "<0x0A><0xFF><0x41> <unused0><unused99>",
    "<|im_start", "im_end|>", "<|", "|>", "<<|im_end|>>", "<|im_end|", "＜|im_end|＞", "<|IM_END|>",
    "ĠtheĊ Ġ ▁the ## ##ing",
    "gen-itgc后 v2.0版 GPT4模型 iPhone手机 A股",
    "supercalifragilisticexpialidocious antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "abababababababababababababababab ABABABABABABABAB",
    "x" * 120,
    " " * 70 + "x",
    "x" + " " * 70,
    "\n" * 40 + "x",
    " \n" * 20,
    "-" * 100,
    "0" * 50,
    "ab " * 60,
    "哈" * 50,
    "😀" * 20,
    "\u0301" * 20,
    "\t\t\t\tif (x) {\n\t\t\t\t\treturn;\n\t\t\t\t}\n",
    "word\u0301s with\u0308 marks\u0323 क\u093f",
    "MiXeD cAsE wOrDs InSiDe",
    "hello\nworld \n next\n  indented\n\ttabbed\n\n  \n\nend",
    "Q: What is 2+2?\nA: 4.\n\nQ: And 3*3?\nA:",
    "The contract ends on 31.12.2025 (§ 5 Abs. 2 S. 1 BGB); see p. 17 ff.",
    "Dear Ms. O'Neill-Smith,\n\nthank you for your e-mail of Jan 3rd. I'd like to\nre-schedule.\n\nBest,\nJ.",
    "E = mc² ⟨ψ|φ⟩ ∀x∈ℝ: x²≥0 α→β ℵ₀ 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝒜 ﬁ ﬂ ㎏ ㍿ Ａ",
]


def texts():
    rng = random.Random(20251201)
    out = list(TEXTS)
    ranges = [(0x20, 0x7E), (0xA0, 0x24F), (0x370, 0x5FF), (0x600, 0x6FF), (0x900, 0xDFF), (0xE00, 0xEFF),
              (0x1100, 0x11FF), (0x2000, 0x2BFF), (0x3040, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3),
              (0xFE00, 0xFFEF), (0x1F300, 0x1FAFF)]
    for i in range(24):
        chars = []
        for _ in range(rng.randint(5, 60)):
            lo, hi = rng.choice(ranges) if i % 2 else ranges[0]
            c = chr(rng.randint(lo, hi))
            # Assigned long ago, so that all Unicode tables agree on it.
            if unicodedata.category(c) != "Cn" and not 0xD800 <= ord(c) <= 0xDFFF:
                chars.append(c)
            if rng.random() < 0.15:
                chars.append(rng.choice([" ", "  ", "\n", "\t", " \n", "'s", "1", "\r\n"]))
        out.append("".join(chars))
    words = " ".join(TEXTS[:50]).split(" ")
    for _ in range(12):
        out.append(" ".join(rng.choice(words) for _ in range(rng.randint(3, 25))))
    return out


PROMPTS = [
    "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nWhat is this? \n\n<|im_end|>\n<|im_start|>assistant\n",
    "<|im_start|><|im_start|> <|im_end|>\n\n<|endoftext|>a<|fim_prefix|>",
    "<bos><start_of_turn>user\nhi there  \n<end_of_turn>\n<start_of_turn>model\n",
    "<eos>  <pad>\n\n\n<unused3> <tool_call>x</tool_call>",
    "no specials at all",
]


def dump(name, value):
    path = HERE / f"tok_{name}.json"
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    path.write_text(text.replace("],[", "],\n[") + "\n")
    print(path, path.stat().st_size, "bytes")


def load_texts():
    return json.loads((HERE / "tok_texts.json").read_text())


def llama(name, model):
    import llama_cpp

    llm = llama_cpp.Llama(model, vocab_only=True, verbose=False)
    ids = [llm.tokenize(t.encode(), add_bos=False, special=False) for t in load_texts()]
    prompts = [llm.tokenize(t.encode(), add_bos=False, special=True) for t in PROMPTS]
    dump(name, {"oracle": f"llama-cpp-python {llama_cpp.__version__}", "ids": ids, "prompts": [[p, i] for p, i in zip(PROMPTS, prompts)]})


def hf(name, path):
    import tokenizers

    spec = json.loads(pathlib.Path(path).read_text())
    spec["padding"], spec["truncation"] = None, None
    framed = tokenizers.Tokenizer.from_str(json.dumps(spec)).encode("a").ids
    spec["added_tokens"] = []
    tok = tokenizers.Tokenizer.from_str(json.dumps(spec))
    ids = [tok.encode(t, add_special_tokens=False).ids for t in load_texts()]
    dump(name, {"oracle": f"tokenizers {tokenizers.__version__}", "ids": ids, "framed_a": framed})


def e5(name, path):
    import tokenizers
    from tokenizers import models, normalizers, pre_tokenizers

    data = pathlib.Path(path).read_bytes()
    at = data.index(b"E5S1")
    # magic, version, 7 sizes, epsilon, block length; then the vocabulary: pieces, bos, eos, pad, unk, bytes
    at += 4 + 4 + 9 * 4
    vocab, bos, eos, pad, unk = struct.unpack_from("<5i", data, at)
    (blob_bytes,) = struct.unpack_from("<Q", data, at + 20)
    at += 28
    ends = struct.unpack_from(f"<{vocab + 1}I", data, at)
    at += 4 * (vocab + 1)
    scores = struct.unpack_from(f"<{vocab}f", data, at)
    at += 4 * vocab
    blob = data[at:at + blob_bytes]
    at += blob_bytes
    rules, _bytes = struct.unpack_from("<iI", data, at)
    at += 8
    steps = []
    for _ in range(rules):
        cp, n = struct.unpack_from("<IB", data, at)
        steps.append((chr(cp), "".join(map(chr, struct.unpack_from(f"<{n}I", data, at + 5)))))
        at += 5 + 4 * n
    mapping = dict(steps)
    pieces = [blob[ends[i]:ends[i + 1]].decode() for i in range(vocab)]
    special = {bos, eos, pad, unk} | {i for i, p in enumerate(pieces) if p == "<mask>"}
    # Unreachable, so that text never becomes one of them.
    model = [(f"\x00{i}" if i in special else p, s) for i, (p, s) in enumerate(zip(pieces, scores))]
    tok = tokenizers.Tokenizer(models.Unigram(model, unk_id=unk, byte_fallback=False))
    tok.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tok.normalizer = normalizers.Sequence([normalizers.Replace(tokenizers.Regex(" {2,}"), " "), normalizers.Strip()])
    mapped = ["".join(mapping.get(c, c) for c in t) for t in load_texts()]
    ids = [tok.encode(t, add_special_tokens=False).ids for t in mapped]
    dump(name, {"oracle": f"tokenizers {tokenizers.__version__}", "ids": ids, "framed_a": [bos, *tok.encode("a").ids, eos]})


if __name__ == "__main__":
    if sys.argv[1:] == ["texts"]:
        dump("texts", texts())
    elif len(sys.argv) == 4 and sys.argv[1] in ("llama", "hf", "e5"):
        {"llama": llama, "hf": hf, "e5": e5}[sys.argv[1]](*sys.argv[2:])
    else:
        sys.exit(__doc__)
