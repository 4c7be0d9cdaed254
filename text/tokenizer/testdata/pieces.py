"""Makes gguf/sentencepiece.json: a small byte-pair model of SentencePiece, and what it makes of texts.

    python pieces.py

Needs sentencepiece 0.2 and the pages of docs. It holds tokens, scores and types as .gguf files have them, and cases: a
text in base64, its ids, and what they decode to. Texts with <sep> are left out: after tokens that are cut out llama.cpp
begins anew with a blank, as tokenizers do, and SentencePiece does not.
"""

import base64
import glob
import io
import json
import os
import random
import re

import sentencepiece as spm

HERE = os.path.dirname(os.path.abspath(__file__))
text = "\n".join(open(f).read() for f in sorted(glob.glob(HERE + "/../../../docs/*.md")))
lines = [line for line in text.split("\n") if line]
out = io.BytesIO()
spm.SentencePieceTrainer.train(
    sentence_iterator=iter(lines), model_writer=out, model_type="bpe", vocab_size=900, byte_fallback=True,
    character_coverage=0.9999, normalization_rule_name="identity", remove_extra_whitespaces=False,
    add_dummy_prefix=True, allow_whitespace_only_pieces=True,
    user_defined_symbols=["<sep>"])
sp = spm.SentencePieceProcessor(model_proto=out.getvalue())
types = [2 if sp.is_unknown(i) else 3 if sp.is_control(i) else 6 if sp.is_byte(i)
         else 4 if sp.id_to_piece(i) == "<sep>" else 1 for i in range(sp.get_piece_size())]
random.seed(3)
odd = ["", " ", "  two  blanks ", "\n\n", "\t", "▁", "a▁b", "naïve café", "日本語のテキスト", "🙂👩‍👩‍👧", "ŝ\u0302 e\u0301",
       "Hello there", "x" * 40, "1234567890", "don't DON'T", "\u200b\u00a0\u3000", "</s", "<0x41>"]
words = re.findall(r"\S+|\s+", text)
for _ in range(120):
    at = random.randrange(len(words) - 12)
    odd.append("".join(words[at:at + random.randrange(1, 12)]))
alphabet = "abcdefghi  \n.,;:()[]{}éßшλ漢🙂_-▁0123456789"
for _ in range(60):
    odd.append("".join(random.choice(alphabet) for _ in range(random.randrange(1, 30))))
cases = [[base64.b64encode(s.encode()).decode(), sp.encode(s), sp.decode(sp.encode(s))] for s in odd]
with open(HERE + "/gguf/sentencepiece.json", "w") as f:
    json.dump({"tokens": [sp.id_to_piece(i) for i in range(sp.get_piece_size())],
               "scores": [round(sp.get_score(i), 3) for i in range(sp.get_piece_size())], "types": types,
               "cases": cases}, f, separators=(",", ":"))
