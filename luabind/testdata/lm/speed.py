"""Tokens that a second of processor time is good for, beside BenchmarkModels, on the directory that it keeps:

    python speed.py DIRECTORY transformers|mlx|mlx4 [rounds]

Prompts of 512 tokens, then decoding of 64, by transformers (one thread, bfloat16) or mlx-lm (bfloat16, or packed in 4
bits), which needs a directory in mlx-lm's form for mlx4: `mlxlua lm quantize`.
"""

import sys
import time

directory, who = sys.argv[1], sys.argv[2]
rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 1
prompt = [i * 37 % 32000 for i in range(512)]

if who == "transformers":
    import torch
    import transformers
    torch.set_num_threads(1)
    model = transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=torch.bfloat16).eval()

    def prefill(prompt):
        with torch.no_grad():
            out = model(torch.tensor([prompt]), use_cache=True, logits_to_keep=1)
        return out.past_key_values, out.logits[:, -1:].argmax(-1)

    def decode(cache, token, n):
        with torch.no_grad():
            for _ in range(n):
                out = model(token, past_key_values=cache, use_cache=True)
                cache, token = out.past_key_values, out.logits[:, -1:].argmax(-1)
else:
    from pathlib import Path
    import mlx.core as mx
    from mlx_lm.models.cache import make_prompt_cache
    from mlx_lm.utils import load_model
    mx.disable_compile()
    model, _ = load_model(Path(directory))

    def prefill(prompt):
        cache = make_prompt_cache(model)
        token = mx.argmax(model(mx.array([prompt]), cache=cache)[:, -1:], -1)
        mx.eval(token)
        return cache, token

    def decode(cache, token, n):
        for _ in range(n):
            token = mx.argmax(model(token, cache=cache)[:, -1:], -1)
            mx.eval(token)


tokens = {"mlx": 8, "mlx4": 4}.get(who, 64)  # mlx-lm is slow here
prompt = prompt[: {"mlx": 64, "mlx4": 16}.get(who)]
decode(*prefill(prompt if who == "transformers" else prompt[:2]), 2)
for _ in range(rounds):
    start = time.process_time()
    cache, token = prefill(prompt)
    middle = time.process_time()
    decode(cache, token, tokens)
    end = time.process_time()
    print(f"{who}: prefill {len(prompt) / (middle - start):.1f}, decode {tokens / (end - middle):.2f} tokens/cpu-s", flush=True)
