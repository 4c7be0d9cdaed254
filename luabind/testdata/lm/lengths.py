"""Makes keys/lengths.json: what transformers answers to texts beyond the length that a model was made for.

    python lengths.py

Needs transformers 5.24, torch and safetensors. For each model of NAMES, "alone" has for each length the logits of WORDS
after the last of so many tokens, read at once; "batch" those after two texts of the lengths BATCH side by side, padded
at the left. transformers chooses the rotary factors by the longest text of a batch.
"""

import json
import os
import tempfile

import torch
import transformers
from safetensors.torch import save_file

import generate
from defaults import WORDS

NAMES = ["llama_longrope", "phi3", "llama_dynamic"]
TOKENS = [3 + (i * i * 7 + 11 * i) % 120 for i in range(48)]
BATCH = [40, 25]

if __name__ == "__main__":
    out = {"tokens": TOKENS, "words": WORDS, "lengths": BATCH}
    for name in NAMES:
        golden = json.load(open(os.path.join(generate.HERE, name + ".json")))
        with tempfile.TemporaryDirectory() as d:
            save_file({k: torch.from_numpy(generate.fill(k, s)) for k, s in golden["shapes"].items()},
                      os.path.join(d, "model.safetensors"), {"format": "pt"})
            json.dump(golden["config"], open(os.path.join(d, "config.json"), "w"))

            def logits(rows, **more):
                # a model of its own for each text: dynamic factors remember the longest
                model = transformers.AutoModelForCausalLM.from_pretrained(d, dtype=torch.float32,
                                                                         attn_implementation="eager").eval()
                with torch.no_grad():
                    return [[float(f"{v:.7g}") for v in row] for row in
                            model(torch.tensor(rows), **more).logits[:, -1, WORDS].tolist()]
            alone = {n: logits([TOKENS[:n]])[0] for n in (12, 16, 17, 24, 31, 32, 33, 34, 40, 48)}
            most = max(BATCH)
            rows = [[0] * (most - n) + TOKENS[:n] for n in BATCH]
            mask = torch.tensor([[0] * (most - n) + [1] * n for n in BATCH])
            places = torch.tensor([[0] * (most - n) + list(range(n)) for n in BATCH])
            out[name] = {"alone": alone, "batch": logits(rows, attention_mask=mask, position_ids=places)}
    with open(os.path.join(generate.HERE, "keys", "lengths.json"), "w") as f:
        json.dump(out, f, sort_keys=True, separators=(",", ":"))
