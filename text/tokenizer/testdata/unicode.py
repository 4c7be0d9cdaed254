"""Writes unicode.txt: which characters belong to which class in Python's tokenizers, asked character by character.

    python3 testdata/unicode.py > unicode.txt        (in text/tokenizer; tokenizers 0.23.3, regex 2026.11.15)

The classes come from four libraries of different Unicode versions (Oniguruma, the crates regex, unicode_categories and
unicode-normalization-alignments), so that no one table of Go's can stand for them.
"""

import regex
from tokenizers import Regex
from tokenizers import normalizers as N
from tokenizers import pre_tokenizers as P

CHARS = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def removed(splitter):
    """The characters that a pre-tokenizer with behavior "removed" drops."""
    out = set()
    for i in range(0, len(CHARS), 4096):
        block = "".join(CHARS[i : i + 4096])
        kept = set()
        for _, (a, b) in splitter.pre_tokenize_str(block):
            kept.update(block[a:b])
        out.update(set(block) - kept)
    return out


def dropped(normalizer):
    """The characters that a normalizer drops."""
    return {c for c in CHARS if normalizer.normalize_str("a" + c + "a") == "aa"}


def pieces(splitter, count):
    """The characters that make count pieces of a, themselves, a."""
    return {c for c in CHARS if len(splitter.pre_tokenize_str("a" + c + "a")) == count}


def bert(**kw):
    options = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    return N.BertNormalizer(**{**options, **kw})


def line(name, chars):
    """name, then the ranges: each the gap since the last one and the length, in base 10."""
    ranges = []
    for c in sorted(ord(c) for c in chars):
        if ranges and ranges[-1][1] == c:
            ranges[-1][1] += 1
        else:
            ranges.append([c, c + 1])
    at, words = 0, []
    for a, b in ranges:
        words.append(f"{a - at}" if b == a + 1 else f"{a - at}+{b - a}")
        at = b
    print(name, " ".join(words))


def lowercase():
    """What Lowercase makes of characters whose small letter is not the one of Python's own, older tables, or is several."""
    words = []
    for c in CHARS:
        low = N.Lowercase().normalize_str(c)
        if low != c and (len(low) > 1 or ord(c) in LATE):
            words.append(f"{ord(c):x}={','.join(f'{ord(x):x}' for x in low)}")
    print("lower", " ".join(words))


# Capital letters since Unicode 16, which package unicode of Go 1.26 (Unicode 15) does not have.
LATE = {0x1C89, *range(0xA7CB, 0xA7DD), *range(0x10D50, 0x10D66), *range(0x16EA0, 0x16EB9)}

print("# Written by testdata/unicode.py; see there.")
for category in "L Lu Ll Lt Lm Lo M N P S Han".split():
    line(category, removed(P.Split(Regex(r"\p{%s}" % category), "removed")))
for category in ("Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Z Zs Cc Cf Arabic Cyrillic Devanagari Greek Hangul "
                 "Hebrew Hiragana Katakana Latin Thai").split():
    line("only" + category, removed(P.Split(Regex(r"\p{%s}" % category), "removed")))  # in patterns without a scanner
for letter in "wds":
    line("only" + letter, removed(P.Split(Regex(r"\%s" % letter), "removed")))
line("space", removed(P.WhitespaceSplit()))
line("word", pieces(P.Whitespace(), 1))
line("numeric", pieces(P.Digits(True), 3))
line("punctuation", removed(P.Punctuation("removed")))
line("unclean", dropped(bert(clean_text=True)))
line("nonspacing", dropped(bert(strip_accents=True)))
line("combining", dropped(N.StripAccents()))
lowercase()
for name in "Control Extend SpacingMark Prepend".split():
    line("grapheme" + name, {c for c in CHARS if regex.match(r"\p{GCB=%s}" % name, c)})


def scripts():
    """The scripts of UnicodeScripts, as numbers; 0 are the characters that go with any."""
    cut = lambda a, b: len(P.UnicodeScripts().pre_tokenize_str(a + b)) == 2
    any_script = {c for c in CHARS if not cut("a", c) and not cut("α", c)}
    runs = []  # of neighbours of one script
    for c in CHARS:
        if c in any_script:
            runs.append([c, c, 0])
        elif runs and runs[-1][2] and ord(runs[-1][1]) + 1 == ord(c) and not cut(runs[-1][1], c):
            runs[-1][1] = c
        else:
            runs.append([c, c, 1])
    groups, at, words = [], 0, []
    for a, b, other in runs:
        group = 0
        if other:
            group = next((i for i, rep in enumerate(groups, 1) if not cut(rep, a)), 0)
            if not group:
                groups.append(a)
                group = len(groups)
            words.append(f"{ord(a) - at}+{ord(b) - ord(a) + 1}={group}")
            at = ord(b) + 1
    print("scripts", " ".join(words))


scripts()
