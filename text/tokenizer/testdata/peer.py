"""The outside truth of this package: small tokenizers, trained and asked by Python's tokenizers (0.23.3).

    python3 testdata/peer.py train           writes testdata/KIND.json (needs sentencepiece 0.2.1 too)
    python3 testdata/peer.py golden          writes testdata/golden.json: what Python makes of some odd strings
    python3 testdata/peer.py pairs           writes testdata/pairs/golden.json: pairs of texts, truncated and padded
    python3 testdata/peer.py patterns        writes testdata/pairs/patterns.json: what patterns find
    python3 testdata/peer.py run KIND N SEED prints what Python makes of N odd strings, a JSON array a line
    python3 testdata/peer.py speed KIND      prints the MB/s of Python, encoding the training text line by line

All in text/tokenizer. The training text are the documents of this repository, and synthetic words of many scripts.
"""

import base64
import glob
import io
import json
import os
import random
import sys
import tempfile
import time

from tokenizers import AddedToken, Regex, Tokenizer
from tokenizers import decoders as D
from tokenizers import models as M
from tokenizers import normalizers as N
from tokenizers import pre_tokenizers as P
from tokenizers import processors as O
from tokenizers import trainers as T

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
BLANKS = r"\s*[\r\n]+|\s+(?!\S)|\s+"
UP, LOW = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
CL100K = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + BLANKS
QWEN2 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + BLANKS
QWEN35 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|" + BLANKS
WORD, CAPS = rf"[^\r\n\p{{L}}\p{{N}}]?{UP}*{LOW}+", rf"[^\r\n\p{{L}}\p{{N}}]?{UP}+{LOW}*"
O200K = (f"{WORD}{CONTRACTIONS}?|{CAPS}{CONTRACTIONS}?" + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + BLANKS)
TEKKEN = f"{WORD}|{CAPS}" + r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + BLANKS
HAN = r"&&[^\p{Han}]]"
KIMI_UP, KIMI_LOW = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}" + HAN, r"[\p{Ll}\p{Lm}\p{Lo}\p{M}" + HAN
KIMI = (rf"[\p{{Han}}]+|[^\r\n\p{{L}}\p{{N}}]?{KIMI_UP}*{KIMI_LOW}+{CONTRACTIONS}?|[^\r\n\p{{L}}\p{{N}}]?{KIMI_UP}+{KIMI_LOW}*"
        rf"{CONTRACTIONS}?|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|" + BLANKS)
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
DEEPSEEK = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|" + BLANKS
).replace('\\"', '"')
CLIP = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"

SPECIAL = ["<|end|>", "<s>", "</s>", "[MASK]"]


def bytes_split(*splits):
    parts = [P.Split(Regex(s), "isolated") for s in splits]
    return P.Sequence(parts + [P.ByteLevel(add_prefix_space=False, use_regex=False)])


class Tok:
    """Collects the parts of a tokenizer and how to train it."""

    def __init__(self, model, trainer, norm=None, pre=None, dec=None, post=None, after=None, added=()):
        self.model, self.trainer, self.norm, self.pre, self.dec = model, trainer, norm, pre, dec
        self.post, self.after, self.added = post, after, added

    def build(self, corpus):
        t = Tokenizer(self.model)
        if self.norm:
            t.normalizer = self.norm
        if self.pre:
            t.pre_tokenizer = self.pre
        if self.dec:
            t.decoder = self.dec
        t.train_from_iterator(corpus, self.trainer)
        t.add_special_tokens([AddedToken(s, normalized=False) for s in SPECIAL[:3]])
        t.add_special_tokens([AddedToken("[MASK]", lstrip=True, normalized=False)])
        t.add_tokens([AddedToken("<tool>", normalized=False), AddedToken("Yesterday"),
                      AddedToken("solo", single_word=True, normalized=False), AddedToken("<r>", rstrip=True),
                      AddedToken("<both>", lstrip=True, rstrip=True, single_word=True)])
        t.add_tokens(list(self.added))
        if self.post:
            t.post_processor = self.post(t)
        text = t.to_str()
        return self.after(text) if self.after else text


def byte_bpe(pre, size=560, **kw):
    model = {k: kw.pop(k) for k in list(kw) if k in ("ignore_merges", "unk_token", "end_of_word_suffix")}
    trainer = dict(vocab_size=size, initial_alphabet=sorted(P.ByteLevel.alphabet()), show_progress=False)
    if "unk_token" in model:
        trainer["special_tokens"] = [model["unk_token"]]
    if "end_of_word_suffix" in model:
        trainer["end_of_word_suffix"] = model["end_of_word_suffix"]
    kw.setdefault("dec", D.ByteLevel())
    return Tok(M.BPE(**model), T.BpeTrainer(**trainer), pre=pre, **kw)


def frame(single, pair):
    return lambda t: O.TemplateProcessing(
        single=single, pair=pair, special_tokens=[(x, t.token_to_id(x)) for x in ("<s>", "</s>")])


def llama3_post(t):
    return O.Sequence([O.ByteLevel(trim_offsets=False), frame("<s> $A", "<s> $A <s>:1 $B:1")(t)])


def roberta_post(t):
    return O.RobertaProcessing(("</s>", t.token_to_id("</s>")), ("<s>", t.token_to_id("<s>")), trim_offsets=True,
                               add_prefix_space=True)


def bert_post(t):
    return O.BertProcessing(("</s>", t.token_to_id("</s>")), ("<s>", t.token_to_id("<s>")))


SPBYTES = [f"<0x{b:02X}>" for b in range(256)]


def sp_bpe(**kw):
    trainer = T.BpeTrainer(vocab_size=760, special_tokens=["<unk>", "<s>", "</s>"] + SPBYTES, limit_alphabet=120,
                           show_progress=False, max_token_length=12)

    normal = kw.pop("then", None)  # a normalizer in place of the pre-tokenizer that training needs

    def after(text):  # the bytes are tokens of the model, not added ones
        raw = json.loads(text)
        if normal:
            raw["pre_tokenizer"] = None
            raw["normalizer"] = json.loads(normal.__getstate__())
        raw["added_tokens"] = [a for a in raw["added_tokens"] if not a["content"].startswith("<0x")]
        return json.dumps(raw)

    return Tok(M.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"), trainer, after=after, **kw)


def uni(fallback=False, **kw):
    special = ["<unk>", "<s>", "</s>"] + (SPBYTES if fallback else [])
    trainer = T.UnigramTrainer(vocab_size=1700 if fallback else 1400, special_tokens=special, unk_token="<unk>", show_progress=False)

    def after(text):
        raw = json.loads(text)
        raw["added_tokens"] = [a for a in raw["added_tokens"] if not a["content"].startswith("<0x")]
        raw["model"]["byte_fallback"] = fallback
        for entry in raw["model"]["vocab"]:
            entry[1] = round(entry[1], 4)
            if entry[0].startswith("<0x"):
                entry[1] = -100.0
        return json.dumps(raw)

    return Tok(M.Unigram(), trainer, after=after, **kw)


def charsmap():
    """A small precompiled normalizer, as sentencepiece writes it."""
    import sentencepiece as spm
    from sentencepiece import sentencepiece_model_pb2 as pb

    rules = {"Ａ": "A", "ａ": "a", "ﬁ": "fi", "①": "1", "…": "...", "\u00a0": " ", "\u3000": " ", "\t": " ", "\u200b": "",
             "é": "e\u0301", "e\u0301": "é", "™": "TM", "ß": "ss", "가": "각", "\u0007": "", "ﷺ": "صلى الله"}
    path = os.path.join(tempfile.mkdtemp(), "rules")
    with open(path + ".tsv", "w") as f:
        for a, b in rules.items():
            f.write(" ".join(f"{ord(c):X}" for c in a) + "\t" + " ".join(f"{ord(c):X}" for c in b) + "\n")
    model = io.BytesIO()
    spm.SentencePieceTrainer.train(sentence_iterator=iter(["some words to train with", "and some more of them"] * 50),
                                   model_writer=model, vocab_size=20, normalization_rule_tsv=path + ".tsv",
                                   minloglevel=2)
    proto = pb.ModelProto.FromString(model.getvalue())
    return proto.normalizer_spec.precompiled_charsmap


def kinds():
    metaspace = dict(replacement="▁")
    sp_decoder = D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)])
    bert = dict(post=bert_post, dec=D.WordPiece())
    wordpiece = dict(vocab_size=640, special_tokens=["[UNK]"], show_progress=False, limit_alphabet=120)
    return {
        "gpt2": lambda: byte_bpe(P.ByteLevel(add_prefix_space=False), post=lambda t: O.ByteLevel(trim_offsets=False)),
        "roberta": lambda: byte_bpe(P.ByteLevel(add_prefix_space=True), post=roberta_post),
        "llama3": lambda: byte_bpe(bytes_split(CL100K), post=llama3_post, ignore_merges=True),
        "qwen2": lambda: byte_bpe(bytes_split(QWEN2), norm=N.NFC(), post=lambda t: O.ByteLevel()),
        "qwen35": lambda: byte_bpe(bytes_split(QWEN35), norm=N.NFC()),
        "o200k": lambda: byte_bpe(bytes_split(O200K)),
        "tekken": lambda: byte_bpe(bytes_split(TEKKEN), ignore_merges=True),
        "deepseek": lambda: byte_bpe(bytes_split(r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+", DEEPSEEK)),
        "falcon": lambda: byte_bpe(P.Sequence([P.Punctuation("contiguous"), P.ByteLevel(add_prefix_space=False),
                                               P.Digits(False), P.Split(Regex("[0-9][0-9][0-9]"), "isolated")])),
        "clip": lambda: byte_bpe(P.Sequence([P.Split(Regex(CLIP), "removed", invert=True),
                                             P.ByteLevel(add_prefix_space=False)]),
                                 norm=N.Sequence([N.NFC(), N.Replace(Regex(r"\s+"), " "), N.Lowercase()]),
                                 post=roberta_post, unk_token="<|end|>", end_of_word_suffix="</w>",
                                 dec=D.Sequence([D.ByteLevel(), D.Replace("</w>", " ")])),
        "bytes-normal": lambda: byte_bpe(P.Split(Regex(r"\w+|[^\w\s]+|\s+"), "isolated"), norm=N.ByteLevel()),
        "llama2": lambda: sp_bpe(norm=N.Sequence([N.Prepend("▁"), N.Replace(" ", "▁")]), dec=sp_decoder,
                                 post=frame("<s> $A", "<s> $A <s>:1 $B:1")),
        "llama2-words": lambda: sp_bpe(pre=P.Metaspace(prepend_scheme="always", **metaspace), dec=sp_decoder,
                                       then=N.Sequence([N.Prepend("▁"), N.Replace(" ", "▁")])),
        "gemma": lambda: sp_bpe(norm=N.Replace(" ", "▁"), pre=P.Split(" ", "merged_with_previous"),
                                dec=D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse()]),
                                post=frame("<s> $A", "<s> $A <s>:1 $B:1")),
        "legacy": lambda: sp_bpe(pre=P.Metaspace(prepend_scheme="first", split=False, **metaspace), dec=sp_decoder),
        "words-bpe": lambda: Tok(M.BPE(unk_token="<unk>", end_of_word_suffix="</w>", continuing_subword_prefix="##"),
                                 T.BpeTrainer(vocab_size=700, special_tokens=["<unk>"], end_of_word_suffix="</w>",
                                              continuing_subword_prefix="##", limit_alphabet=60, show_progress=False),
                                 pre=P.BertPreTokenizer(), dec=D.BPEDecoder("</w>")),
        "xlmr": lambda: uni(norm=N.Sequence([N.Precompiled(charsmap()), N.Replace(Regex(" {2,}"), " ")]),
                            pre=P.Metaspace(prepend_scheme="always", **metaspace), dec=D.Metaspace(**metaspace),
                            post=frame("<s> $A </s>", "<s> $A </s> </s> $B </s>")),
        "albert": lambda: uni(norm=N.Sequence([N.Replace("``", '"'), N.NFKD(), N.StripAccents(), N.Lowercase(), N.Strip(),
                                               N.Nmt()]),
                              pre=P.Sequence([P.WhitespaceSplit(), P.Metaspace(prepend_scheme="first", **metaspace)]),
                              dec=D.Metaspace(**metaspace)),
        "unigram-bytes": lambda: uni(True, norm=N.NFKC(), pre=P.Metaspace(prepend_scheme="never", **metaspace),
                                     dec=D.Sequence([D.ByteFallback(), D.Metaspace(prepend_scheme="never", **metaspace)])),
        "bert": lambda: Tok(M.WordPiece(unk_token="[UNK]"), T.WordPieceTrainer(**wordpiece), norm=N.BertNormalizer(),
                            pre=P.BertPreTokenizer(), **bert),
        "bert-cased": lambda: Tok(M.WordPiece(unk_token="[UNK]", max_input_chars_per_word=20), T.WordPieceTrainer(**wordpiece),
                                  norm=N.BertNormalizer(lowercase=False, strip_accents=False), pre=P.BertPreTokenizer(), **bert),
        "wordlevel": lambda: Tok(M.WordLevel(unk_token="[UNK]"),
                                 T.WordLevelTrainer(vocab_size=500, special_tokens=["[UNK]"], show_progress=False),
                                 norm=N.Sequence([N.NFD(), N.Lowercase(), N.StripAccents()]), pre=P.Whitespace()),
        "mixed": lambda: byte_bpe(P.Sequence([P.UnicodeScripts(), P.CharDelimiterSplit("|"), P.Split("-", "merged_with_next"),
                                              P.Split(Regex("[aeiou]"), "merged_with_previous"), P.Digits(True),
                                              P.FixedLength(7), P.ByteLevel(add_prefix_space=False, use_regex=False)]),
                                  norm=N.Sequence([N.NFKC(), N.Strip(True, False), N.Prepend("x")])),
        "kimi": lambda: byte_bpe(bytes_split(KIMI), ignore_merges=True),
        "bloom": lambda: byte_bpe(bytes_split(BLOOM), post=lambda t: O.ByteLevel(trim_offsets=False)),
    }


def corpus():
    text = []
    for pattern in ("docs/*.md", "*.md", "scripts/**/*.lua"):
        for path in sorted(glob.glob(os.path.join(ROOT, pattern), recursive=True)):
            with open(path, encoding="utf-8") as f:
                text.append(f.read())
    text = "".join(text)[:400_000]
    rng = random.Random(17)
    words = ["".join(rng.choice(script) for _ in range(rng.randint(1, 6))) for script in SCRIPTS for _ in range(36)]
    rng.shuffle(words)
    return text.split("\n") + [" ".join(words[i : i + 9]) for i in range(0, len(words), 9)]


def span(a, b):
    return [chr(c) for c in range(a, b + 1)]


SCRIPTS = [span(0x61, 0x7A), span(0x41, 0x5A), span(0x30, 0x39), span(0xC0, 0x17F), span(0x391, 0x3C9), span(0x410, 0x44F),
           span(0x5D0, 0x5EA), span(0x627, 0x64A), span(0x905, 0x939), span(0xE01, 0xE2E), span(0x3041, 0x3096),
           span(0x30A1, 0x30FA), span(0x4E00, 0x4E80), span(0xAC00, 0xAC80), span(0x1F600, 0x1F64F), span(0x10A0, 0x10C5),
           span(0x1D400, 0x1D440), span(0xFF21, 0xFF5A), span(0x2460, 0x2490), span(0xFB00, 0xFB06)]
MARKS = span(0x300, 0x36F) + span(0x64B, 0x655) + span(0x93E, 0x94D) + span(0x20D0, 0x20DC) + ["\u3099", "\u302a", "\u1ab0", "\u1abf"]
SPACES = [" ", " ", " ", "  ", "\t", "\n", "\r", "\r\n", "\n\n", "\u00a0", "\u2003", "\u3000", "\u0085", "\u2028", "\u200b", "\x0b", "\x1c",
          "\ufeff"]
CONTROLS = span(0, 31) + span(0x7F, 0x9F) + ["\u200d", "\u200e", "\u202e", "\ufe0f", "\ufff9", "\ufffd", "\uffff", "\U0010ffff", "\ue000"]
PUNCT = list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~") + ["…", "—", "。", "、", "«", "»", "“", "”", "€", "™", "©", "½", "²", "Ⅷ", "▁", "Ġ"]
EMOJI = ["👩‍👩‍👧‍👦", "👍🏽", "🇩🇪🇫🇷", "❤️", "🏳️‍🌈", "☺", "1️⃣"]
SPECIALS = ["<s>", "</s>", "<|end|>", "[MASK]", "<tool>", "Yesterday", "yesterday", "solo", "solos", "<r>", "<both>", "<unk>", "[UNK]", "<0x41>",
            "<0xE4>", "<|en", "d|>", "##ing", "</w>"]
WORDS = ["the", "The", "array", "don't", "I'LL", "we've", "'S", "'ſ", "it's", "can’t", "ﬁne", "ſtop", "HTTPServer", "camelCase", "İstanbul",
         "STRASSE", "straße", "e\u0301t\u00e9", "Å", "A\u030a", "각", "\u1100\u1161\u11a8", "3.14", "1234567", "١٢٣", "x=y", "a_b", "naïve", "``", "foo|bar",
         "well-known", "ab-cd-ef", "ꟊ", "\u1c89", "\U00010d50", "ǅ", "ʰ", "ª", "𝒳", "ﷺ", "…", "①②"]


def odd(rng):
    """A string that a tokenizer may trip over."""
    parts = []
    for _ in range(int(rng.expovariate(0.2)) + (rng.random() < 0.97)):
        what = rng.random()
        if what < 0.30:
            parts.append(rng.choice(WORDS))
        elif what < 0.45:
            script = rng.choice(SCRIPTS)
            parts.append("".join(rng.choice(script) for _ in range(rng.randint(1, 8))))
        elif what < 0.65:
            parts.append(rng.choice(SPACES) * rng.choice([1, 1, 1, 2, 5]))
        elif what < 0.74:
            parts.append(rng.choice(PUNCT) * rng.choice([1, 1, 2, 4]))
        elif what < 0.80:
            parts.append("".join(rng.choice(MARKS) for _ in range(rng.choice([1, 1, 2, 3]))))
        elif what < 0.84:
            parts.append(rng.choice(CONTROLS))
        elif what < 0.88:
            parts.append(rng.choice(EMOJI))
        elif what < 0.95:
            parts.append(rng.choice(SPECIALS))
        elif what < 0.98:
            parts.append(chr(rng.choice([rng.randrange(0x80, 0x3000), rng.randrange(0x3000, 0xD800), rng.randrange(0xE000, 0x30000)])))
        else:
            parts.append(rng.choice(["a", " ", "ab", "é", "字", "🙂", "\u0301", "\n", "1", "!", "▁", "A"]) * rng.choice([33, 70, 300]))
    text = "".join(parts).encode("utf-8")
    if text and rng.random() < 0.05:  # broken: cut, or with a byte that does not belong
        at = rng.randrange(len(text))
        text = text[:at] + (bytes([rng.randrange(256)]) if rng.random() < 0.5 else b"") + text[at + 1 :]
    return text


def answer(t, raw):
    """[base64 of the text, ids, spans in bytes, decoded, decoded without special tokens]"""
    text = raw.decode("utf-8", "replace")
    e = t.encode(text)
    at = [0]
    for c in text:
        at.append(at[-1] + len(c.encode("utf-8")))
    spans = [x for a, b in e.offsets for x in (at[a], at[b])]
    return [base64.b64encode(raw).decode(), e.ids, spans, t.decode(e.ids, skip_special_tokens=False), t.decode(e.ids)]


TRUNCATIONS = [None] + [
    {"direction": d, "max_length": n, "strategy": s, "stride": 0}
    for d, n, s in [("Right", 9, "LongestFirst"), ("Left", 9, "LongestFirst"), ("Right", 12, "OnlyFirst"), ("Left", 14, "OnlySecond"),
                    ("Right", 4, "LongestFirst"), ("Right", 5, "LongestFirst")]]
PADDINGS = [None] + [
    {"strategy": s, "direction": d, "pad_to_multiple_of": m, "pad_id": 3, "pad_type_id": 1, "pad_token": "x"}
    for s, d, m in [("BatchLongest", "Right", 8), ({"Fixed": 16}, "Left", None), ({"Fixed": 5}, "Right", None)]]


def pairs():
    """[kind, truncation, padding, texts, special, encodings or null]; an encoding is [ids, types, mask, special, spans]."""
    rng = random.Random(3)
    for kind in ("llama3", "roberta", "bert", "xlmr", "gpt2", "wordlevel"):
        with open(os.path.join(HERE, kind + ".json"), encoding="utf-8") as f:
            raw = json.load(f)
        for _ in range(24):
            raw["truncation"], raw["padding"] = rng.choice(TRUNCATIONS), rng.choice(PADDINGS)
            t = Tokenizer.from_str(json.dumps(raw))
            texts = [" ".join(rng.choice(["the", "array", "don't", "x=y", "1234", "<s>"]) for _ in range(rng.randint(0, 9)))
                     for _ in range(rng.choice([1, 2, 2, 3]))]
            special = rng.random() < 0.8
            try:
                if len(texts) == 2:
                    out = [t.encode(*texts, add_special_tokens=special)]
                else:
                    out = t.encode_batch(texts, add_special_tokens=special)
            except BaseException:
                out = None
            yield [kind, raw["truncation"], raw["padding"], texts, special, out and [
                [e.ids, e.type_ids, e.attention_mask, e.special_tokens_mask, [x for o in e.offsets for x in o]] for e in out]]


# Patterns that have a scanner, and that have none.
PATTERNS = [
    GPT2, CL100K, QWEN2, QWEN35, O200K, TEKKEN, DEEPSEEK, CLIP, r"<\|startoftext\|>|<\|endoftext\|>|" + CLIP, r"\p{N}{1,3}", r"\p{N}",
    "[一-龥\u3040-ゟ゠-ヿ]+", KIMI, BLOOM,
    r"(?i:[sdmt]|ll|ve|re)", r"(?i:[^sk])", r"\p{Han}+|\P{Han}", r"[\p{L}&&\p{Latin}&&[^a-f]]+", r"[^\p{L}&&\w]+", r"[[a-z][0-9]_]+",
    r"\w+|[^\w\s]+|\s+", r"\b", r"\B.", r"\d{2,}?|\D{3}", r"(?<=\p{Lu})(?=\p{Ll})", r"(?>a+)b|[\x20-\x{7e}]\u0301?", r"[]a]|[a\]-]|\[",
    r"\p{^L}\p{Mn}*", r"(?:a|b){1,2}|\p{Nd}|\p{nl}|\p{Sm}", r"^.|.$", r"[\p{Hiragana}\p{Katakana}ー]+|\p{Cyrillic}+", r"\A\s*|\s*\z", "é|\\.|'", r"(?i:don't)"]


def patterns():
    rng = random.Random(5)
    for pattern in PATTERNS:
        split = P.Split(Regex(pattern), "isolated", invert=False)
        mark = P.Split(Regex(pattern), "removed")
        texts, found = [], []
        while len(texts) < 24:
            text = odd(rng).decode("utf-8", "replace")
            if len(text) > 60:
                continue
            at = [0]
            for c in text:
                at.append(at[-1] + len(c.encode("utf-8")))
            between = {tuple(o) for _, o in mark.pre_tokenize_str(text)}
            texts.append(text)
            found.append([at[x] for _, o in split.pre_tokenize_str(text) if tuple(o) not in between for x in o])
        yield {"pattern": pattern, "texts": texts, "found": found}


def main():
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    what = sys.argv[1]
    if what == "train":
        text = corpus()
        only = sys.argv[2:]
        for name, make in kinds().items():
            if only and name not in only:
                continue
            raw = json.loads(make().build(text))
            with open(os.path.join(HERE, name + ".json"), "w", encoding="utf-8") as f:
                json.dump(raw, f, ensure_ascii=False, separators=(",", ":"))
                f.write("\n")
            print(name, os.path.getsize(f.name))
    elif what == "golden":
        rng = random.Random(1)
        out = {name: [answer(Tokenizer.from_file(os.path.join(HERE, name + ".json")), s) for s in [odd(rng) for _ in range(36)]
                      if len(s) < 200] for name in kinds()}
        with open(os.path.join(HERE, "golden.json"), "w", encoding="utf-8") as f:
            f.write("{\n" + ",\n".join(f"{json.dumps(k)}: [\n" + ",\n".join(
                json.dumps(a, ensure_ascii=True, separators=(",", ":")) for a in v) + "]" for k, v in out.items()) + "}\n")
    elif what == "pairs":
        os.makedirs(os.path.join(HERE, "pairs"), exist_ok=True)
        with open(os.path.join(HERE, "pairs", "golden.json"), "w", encoding="utf-8") as f:
            f.write("[\n" + ",\n".join(json.dumps(x, separators=(",", ":")) for x in pairs()) + "]\n")
    elif what == "patterns":
        with open(os.path.join(HERE, "pairs", "patterns.json"), "w", encoding="utf-8") as f:
            f.write("[\n" + ",\n".join(json.dumps(x, separators=(",", ":")) for x in patterns()) + "]\n")
    elif what == "run":
        t = Tokenizer.from_file(os.path.join(HERE, sys.argv[2] + ".json"))
        rng = random.Random(int(sys.argv[4]))
        for _ in range(int(sys.argv[3])):
            print(json.dumps(answer(t, odd(rng)), separators=(",", ":")))
    elif what == "speed":
        t = Tokenizer.from_file(os.path.join(HERE, sys.argv[2] + ".json"))
        lines = [x for x in sys.stdin.read().split("\n")]
        size = sum(len(x.encode()) for x in lines)
        t.encode_batch_fast(lines)
        best = 1e9
        for _ in range(3):
            start = time.process_time()
            for x in lines:
                t.encode(x).ids
            best = min(best, time.process_time() - start)
        print(size / best / 1e6)


main()
