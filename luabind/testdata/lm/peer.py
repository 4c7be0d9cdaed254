"""Makes the golden files of peer/: what mlx-lm says to models with rows that groups of 128 divide.

    python peer.py MLXLUA [name...]

Needs mlx-lm 0.32.2 beside what generate.py needs, and the program mlxlua, which converts and packs the directories that
mlx-lm reads. For each model NAME.json holds config.json and shapes as generate.py's, NAME.safetensors the greedy text
of 200 tokens after PROMPT, in floats and packed, with the log-probability of each token; "kept" is the text of 60
tokens of which 24 are remembered, for the models in which mlx-lm has that. A repetition penalty keeps the texts from
circling.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import mlx.core as mx
import numpy as np
import torch
from mlx_lm.generate import generate_step
from mlx_lm.sample_utils import make_logits_processors
from mlx_lm.utils import load_model
from safetensors.torch import save_file

import generate

mx.disable_compile()
PEER = os.path.join(generate.HERE, "peer")
PROMPT = [3, 77, 12, 91, 64, 9, 33]
PACKED = {"affine4": ["--q-bits", "4", "--q-group-size", "64"], "affine8": ["--q-bits", "8", "--q-group-size", "128"],
          "mxfp4": ["--q-mode", "mxfp4"], "nvfp4": ["--q-mode", "nvfp4"], "mxfp8": ["--q-mode", "mxfp8"]}

WIDE = dict(hidden_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=32,
            intermediate_size=256)
UNSAID = {k: v for k, v in WIDE.items() if k != "head_dim"}
EXPERTS = dict(WIDE, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=128)
WINDOWS = dict(WIDE, layer_types=["sliding_attention", "full_attention"])
FEW = dict(WIDE, num_hidden_layers=4, layer_types=["sliding_attention", "full_attention"] * 2)
LATENT = dict(num_key_value_heads=4, q_lora_rank=128, kv_lora_rank=128, qk_nope_head_dim=128, qk_rope_head_dim=128,
              v_head_dim=32)
BLOCK = dict(mamba_d_head=32, mamba_n_groups=1)
HYBRID = dict(layer_types=["linear_attention", "full_attention"], full_attention_interval=2,
              linear_value_head_dim=32)
LONG = {"rope_type": "longrope", "rope_theta": 10000.0, "original_max_position_embeddings": 32,
        "short_factor": [1.5 + 0.5 * i for i in range(16)], "long_factor": [1.5 + 0.5 * i for i in range(16)]}
# What differs from generate.py's models. mlx-lm leaves out the windows of mistral and gemma2, yarn's truncate
# (gpt_oss), the factors for short texts (phi3), which layers are dense and whether shares are normalised (qwen2_moe),
# that glm turns half a head and the activation of gemma and starcoder2, and rounds the root of gemma's hidden_size, which is 16 here.
CHANGES = {
    "llama": WIDE, "mistral": dict(WIDE, sliding_window=None), "qwen3": WIDE, "qwen3_moe": EXPERTS,
    "qwen3_next": dict(EXPERTS, **HYBRID, shared_expert_intermediate_size=128), "qwen3_5": dict(WIDE, **HYBRID),
    "qwen3_5_moe": dict(EXPERTS, **HYBRID, shared_expert_intermediate_size=128), "gemma3": dict(
        WINDOWS, hidden_size=256, query_pre_attn_scalar=32, sliding_window_pattern=2),
    "gemma3n": dict(FEW, activation_sparsity_pattern=[0.7] + [0.0] * 3, num_kv_shared_layers=0,
                    hidden_size_per_layer_input=64, hidden_size=256),
    "gemma4": dict(FEW, num_kv_shared_layers=2, hidden_size_per_layer_input=64, global_head_dim=64, hidden_size=256),
    "gemma4_moe": dict(FEW, global_head_dim=64, top_k_experts=4, moe_intermediate_size=128, hidden_size=256),
    "glm4_moe": dict(WIDE, moe_intermediate_size=128),
    "glm4_moe_lite": dict(UNSAID, **LATENT, moe_intermediate_size=128, mlp_layer_types=["dense", "sparse"]),
    "llama4": dict(WIDE, num_hidden_layers=4, intermediate_size_mlp=128, rms_norm_eps=1e-6), "ministral3": WIDE,
    "mistral3": WIDE, "qwen2_vl": UNSAID, "qwen2_5_vl": UNSAID, "qwen3_vl": WIDE, "qwen3_vl_moe": EXPERTS,
    "lfm2": dict(UNSAID, layer_types=["conv", "full_attention"], block_multiple_of=128),
    "lfm2_moe": dict({k: v for k, v in EXPERTS.items() if k != "head_dim"}, layer_types=["conv", "full_attention"]),
    "granitemoehybrid": dict(UNSAID, **BLOCK, num_local_experts=4, shared_intermediate_size=128,
                             layer_types=["linear_attention", "full_attention"]),
    "granite_dense": dict(UNSAID, **BLOCK, shared_intermediate_size=256,
                          layer_types=["linear_attention", "full_attention"]),
    "nemotron_h": dict(WIDE, moe_shared_expert_intermediate_size=128, moe_intermediate_size=128, mamba_head_dim=32),
    "mamba2": dict(hidden_size=128, num_hidden_layers=2, head_dim=32, n_groups=1), "olmo3": UNSAID,
    "olmoe": dict({k: v for k, v in EXPERTS.items() if k not in ("head_dim", "moe_intermediate_size")}, clip_qkv=None),
    "phi": dict(UNSAID, qk_layernorm=False), "gpt2": dict(n_embd=128, n_layer=2, n_positions=256),
    "gpt_neox": {k: v for k, v in UNSAID.items() if k != "num_key_value_heads"}, "exaone4": UNSAID,
    "minimax_m2": dict(WIDE, num_local_experts=4), "deepseek_v2": dict(UNSAID, **LATENT, moe_intermediate_size=128),
    "gpt_oss": dict(WINDOWS, num_local_experts=4, num_experts_per_tok=2, rope_parameters=generate.YARN),
    "deepseek_v3": dict(UNSAID, **LATENT, moe_intermediate_size=128),
    "qwen2": dict(WIDE, use_sliding_window=False), "qwen2_moe": dict(EXPERTS, mlp_only_layers=[], norm_topk_prob=False,
                                                      shared_expert_intermediate_size=128),
    "phi3": dict(UNSAID, rope_parameters=LONG), "gemma": dict(WIDE, hidden_size=256, hidden_activation="gelu"),
    "gemma2": dict(WINDOWS, hidden_size=256, sliding_window=512), "olmo2": UNSAID, "smollm3": WIDE,
    "granite": UNSAID, "mixtral": dict(WIDE, num_local_experts=4), "glm": dict(
        WIDE, rope_parameters=dict(generate.HALVES, partial_rotary_factor=1.0)),
    "glm4": WIDE, "cohere": UNSAID,
    "cohere2": dict(WINDOWS, sliding_window_pattern=2), "ernie4_5": WIDE, "seed_oss": WIDE,
    "starcoder2": dict(UNSAID, sliding_window=None, hidden_act="gelu"), "stablelm": UNSAID,
}
AS_THEY_ARE = {"olmo2", "gemma3n", "gemma4", "gemma4_moe", "ministral3"}


def said(d, count, **more):
    """The greedy text of a directory: tokens and their log-probabilities."""
    model, _ = load_model(Path(d))
    tokens, values = [], []
    penalty = make_logits_processors(repetition_penalty=1.5, repetition_context_size=20)
    for token, scores in generate_step(mx.array(PROMPT), model, max_tokens=count, logits_processors=penalty, **more):
        tokens.append(int(token))
        values.append(float(scores[int(token)]))
    return torch.tensor(tokens, dtype=torch.uint8), torch.tensor(values, dtype=torch.float32), model


def changed(settings, changes):
    """Settings of a model with changes, which are of the text."""
    if "text_config" not in settings:
        return dict(settings, **changes)
    return dict(settings, text_config=dict(settings["text_config"], **changes))


def make(mlxlua, name):
    kind, settings = generate.MODELS[name]
    out = {}
    with tempfile.TemporaryDirectory() as d:
        _, config, shapes = generate.save(kind, changed(settings, CHANGES[name]), d + "/model")
        for key, args in {"floats": None, **PACKED}.items():
            command = ["convert"] if args is None else ["quantize", *args]
            if name in AS_THEY_ARE and key[0] != "a" and args:
                continue  # MLX unpacks embeddings of these modes as bfloat16, which these multiply as they are
            subprocess.run([mlxlua, "lm", *command, "--model", d + "/model", "--mlx-path", f"{d}/{key}"], check=True,
                           stdout=subprocess.DEVNULL)
            try:
                out[key + ".tokens"], out[key + ".values"], model = said(f"{d}/{key}", 200)
            except Exception as e:
                print(f"{name} {key}: {type(e).__name__}: {str(e)[:200]}")
                continue
            if key == "floats" and not hasattr(model, "make_cache"):
                out["kept.tokens"], out["kept.values"], _ = said(f"{d}/{key}", 60, max_kv_size=24)
    os.makedirs(PEER, exist_ok=True)
    save_file(out, os.path.join(PEER, name + ".safetensors"))
    with open(os.path.join(PEER, name + ".json"), "w") as f:
        json.dump({"config": config, "shapes": shapes}, f, sort_keys=True, separators=(",", ":"))
    words = len(set(out.get("floats.tokens", torch.zeros(0)).tolist()))
    print(name, " ".join(sorted({k.split(".")[0] for k in out})), words, "words", flush=True)


if __name__ == "__main__":
    for name in sys.argv[2:] or CHANGES:
        make(sys.argv[1], name)
