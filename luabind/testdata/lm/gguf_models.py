"""Makes the golden files of gguf/: what transformers answers to .gguf files, which it unpacks by the package gguf.

    python gguf_models.py [name...]

Needs what generate.py needs and gguf 0.19. For each file NAME.json holds its metadata and its tensors, by name, shape
and type, and NAME.safetensors the answer to TOKENS. What is in the tensors is drawn anew by the name and the type, here
and in model_gguf_test.go alike: see data.
"""

import json
import os
import sys
import tempfile

import gguf
import numpy as np
import torch
import transformers
from safetensors.torch import save_file

from generate import HERE, fill

TOKENS = [3, 41, 12, 60, 33, 9, 27]
WORDS = 64
# The numbers that a block of a type begins with, as halves, and where; all else in it is drawn.
SCALES = {
    "Q8_0": {0: 0x1400}, "Q4_0": {0: 0x2400}, "Q4_1": {0: 0x2400, 2: 0xB000}, "Q5_0": {0: 0x2000},
    "Q5_1": {0: 0x2000, 2: 0xB000}, "Q4_K": {0: 0x0800, 2: 0x1400}, "Q5_K": {0: 0x0400, 2: 0x1400},
    "Q6_K": {208: 0x0200},
}


def drawn(name, n):
    """n bytes by a name: the first digits of fill's numbers."""
    return ((fill(name, (n, 1)).ravel() / np.float32(0.14) + np.float32(1)) * np.float32(128)).astype(np.uint8)


def data(name, shape, kind):
    """The bytes of a tensor."""
    if kind in ("F32", "F16", "BF16"):
        x = fill(name, shape)
        if kind == "F32":
            return x
        if kind == "F16":
            return x.astype(np.float16)
        return (x.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8).reshape(*shape[:-1], -1)
    block, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
    count = int(np.prod(shape)) // block
    b = drawn(name, count * size).reshape(count, size)
    for at, half in SCALES[kind].items():
        b[:, at], b[:, at + 1] = half & 255, half >> 8
    return b.reshape(*shape[:-1], -1)


def model(arch, layers, hidden, heads, kv_heads, size, inner, more=(), kind="F32", tied=False, experts=0, names=None,
          **about):
    """A file: metadata and tensors."""
    meta = {"block_count": layers, "context_length": 128, "embedding_length": hidden, "feed_forward_length": inner,
            "attention.head_count": heads, "attention.head_count_kv": kv_heads, "attention.key_length": size,
            "attention.value_length": size, "attention.layer_norm_rms_epsilon": 1e-6, "rope.freq_base": 10000.0,
            "rope.dimension_count": size, "vocab_size": WORDS, **about}
    meta = {"general.architecture": arch, **{f"{arch}.{k}": v for k, v in meta.items()}}
    tensors = [("token_embd.weight", [WORDS, hidden], kind), ("output_norm.weight", [hidden], "F32")]
    if not tied:
        tensors.append(("output.weight", [WORDS, hidden], kind))
    shapes = {"attn_norm": [hidden], "ffn_norm": [hidden], "attn_q": [heads * size, hidden],
              "attn_k": [kv_heads * size, hidden], "attn_v": [kv_heads * size, hidden],
              "attn_output": [hidden, heads * size]}
    if experts:
        shapes |= {"ffn_gate_inp": [experts, hidden], "ffn_gate_exps": [experts, inner, hidden],
                   "ffn_up_exps": [experts, inner, hidden], "ffn_down_exps": [experts, hidden, inner]}
    else:
        shapes |= {"ffn_gate": [inner, hidden], "ffn_up": [inner, hidden], "ffn_down": [hidden, inner]}
    shapes |= names or {}
    for i in range(layers):
        for name, shape in shapes.items():
            if shape is None:
                continue
            base, end = name if isinstance(name, tuple) else (name, "weight")
            plain = len(shape) == 1 or base == "ffn_gate_inp"
            tensors.append((f"blk.{i}.{base}.{end}", shape, "F32" if plain else kind))
    return meta, tensors + list(more)


def biases(hidden, kv):
    return {("attn_q", "bias"): [hidden], ("attn_k", "bias"): [kv], ("attn_v", "bias"): [kv]}


FOUR = {"post_attention_norm": [64], "post_ffw_norm": [64]}
SHARED = {"ffn_gate_inp_shexp": [64], "ffn_gate_shexp": [32, 64], "ffn_up_shexp": [32, 64], "ffn_down_shexp": [64, 32]}
FUSED = {"attn_q": None, "attn_k": None, "attn_v": None, "ffn_gate": None, "attn_qkv": [128, 64], "ffn_up": [192, 64]}
NORMS = {"attn_q_norm": [16], "attn_k_norm": [16]}
FACTORS = [("rope_factors_short.weight", [8], "F32"), ("rope_factors_long.weight", [8], "F32")]
CASES = {kind: model("llama", 1, 256, 4, 2, 64, 256, kind=kind)
         for kind in ("F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K")}
CASES |= {
    "qwen2": model("qwen2", 2, 64, 4, 2, 16, 96, names=biases(64, 32), tied=True),
    "qwen2moe": model("qwen2moe", 2, 64, 4, 2, 16, 32, names=biases(64, 32) | SHARED, experts=4, expert_count=4,
                      expert_used_count=2, expert_feed_forward_length=32, expert_shared_feed_forward_length=32),
    "qwen3": model("qwen3", 2, 64, 4, 2, 16, 96, names=NORMS),
    "qwen3moe": model("qwen3moe", 2, 64, 4, 2, 16, 32, names=NORMS, experts=4, expert_count=4, expert_used_count=2,
                      expert_feed_forward_length=32),
    "gemma2": model("gemma2", 2, 64, 2, 1, 256, 96, names=FOUR, tied=True,
                    **{"attention.sliding_window": 4, "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0}),
    "gemma3": model("gemma3", 6, 64, 2, 1, 256, 96, names=FOUR | {"attn_q_norm": [256], "attn_k_norm": [256]},
                    tied=True, **{"attention.sliding_window": 4, "rope.freq_base": 1000000.0}),
    "phi3": model("phi3", 2, 64, 4, 2, 16, 96, names=FUSED),
    "phi3_long": model("phi3", 2, 64, 4, 2, 16, 96, names=FUSED, more=FACTORS,
                       **{"rope.scaling.original_context_length": 64, "rope.scaling.attn_factor": 1.0801234}),
}


# Architectures that transformers does not read: the class of transformers, its settings, and what the file says beside
# what all say. Names are those of the package gguf; what llama.cpp's converter does to weights is undone by whole.
HALVES = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}
SMALL = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=96,
             vocab_size=WORDS, max_position_embeddings=128, pad_token_id=0, bos_token_id=1, eos_token_id=2,
             rope_parameters={"rope_type": "default", "rope_theta": 10000.0})
EPS = {"attention.layer_norm_epsilon": 1e-5, "attention.layer_norm_rms_epsilon": None}
OTHERS = {
    "mixtral": ("Mixtral", dict(num_local_experts=4, num_experts_per_tok=2, rms_norm_eps=1e-6), "llama",
                {"expert_count": 4, "expert_used_count": 2}),
    "granite": ("Granite", dict(rms_norm_eps=1e-6, embedding_multiplier=6.5, attention_multiplier=0.3, logits_scaling=2.5,
                                residual_multiplier=0.4), "granite",
                {"attention.scale": 0.3, "embedding_scale": 6.5, "residual_scale": 0.4, "logit_scale": 2.5}),
    "olmo2": ("Olmo2", dict(rms_norm_eps=1e-6), "olmo2", {}),
    "smollm3": ("SmolLM3", dict(num_hidden_layers=4, no_rope_layer_interval=4, tie_word_embeddings=True), "smollm3",
                {"block_count": 4}),
    "glm4": ("Glm4", dict(head_dim=16, attention_bias=True, rms_norm_eps=1e-6, rope_parameters=HALVES), "glm4",
             {"rope.dimension_count": 8}),
    "command-r": ("Cohere", dict(use_qk_norm=True, logit_scale=0.3, layer_norm_eps=1e-5), "command-r",
                  {"logit_scale": 0.3, **EPS}),
    "cohere2": ("Cohere2", dict(num_hidden_layers=4, head_dim=16, sliding_window=4, logit_scale=0.3, layer_norm_eps=1e-5),
                "cohere2", {"block_count": 4, "logit_scale": 0.3, "attention.sliding_window": 4, **EPS}),
    "seed_oss": ("SeedOss", dict(head_dim=16, attention_bias=True, attention_out_bias=False), "seed_oss", {}),
    "starcoder2": ("Starcoder2", dict(norm_epsilon=1e-5), "starcoder2", EPS),
    "stablelm": ("StableLm", dict(use_qkv_bias=True, layer_norm_eps=1e-5, rope_parameters=dict(
        HALVES, partial_rotary_factor=0.25)), "stablelm", {"rope.dimension_count": 4, **EPS}),
    "gemma": ("Gemma", dict(head_dim=16, tie_word_embeddings=True), "gemma", {}),
}


def whole(name):
    """A file of OTHERS, and the model that answers for it: metadata, tensors, model."""
    kind, settings, arch, more = OTHERS[name]
    config = getattr(transformers, kind + "Config")(**dict(SMALL, **settings))
    config._attn_implementation = "eager"
    m = getattr(transformers, kind + "ForCausalLM")(config).eval()
    number = next(k for k, v in gguf.MODEL_ARCH_NAMES.items() if v == arch)
    names = gguf.get_tensor_name_map(number, config.num_hidden_layers)
    tensors, weights = [], {}

    def tensor(name, shape):
        tensors.append((name, list(shape), "F32"))
        return torch.from_numpy(data(name, list(shape), "F32"))

    for key, old in m.state_dict().items():
        if key == "lm_head.weight" and config.tie_word_embeddings:
            continue
        layer = ".".join(key.split(".")[1:3]).replace("layers", "blk")
        if key.endswith("experts.gate_up_proj"):
            e, rows, columns = old.shape
            weights[key] = torch.cat([tensor(f"{layer}.ffn_{part}_exps.weight", (e, rows // 2, columns))
                                      for part in ("gate", "up")], 1)
            continue
        if key.endswith("experts.down_proj"):
            weights[key] = tensor(f"{layer}.ffn_down_exps.weight", old.shape)
            continue
        new = names.get_name(key.replace("mlp.gate.weight", "block_sparse_moe.gate.weight"), (".weight", ".bias"))
        assert new, key
        x = tensor(new, old.shape)
        heads = {"q_proj.weight": 4, "k_proj.weight": 2}.get(".".join(key.split(".")[-2:]))
        if heads and arch in ("llama", "granite", "smollm3"):  # its permute takes the halves of a head as pairs
            x = x.reshape(heads, -1, 2, x.shape[-1]).transpose(1, 2).reshape(old.shape)
        if arch == "gemma" and key.endswith("norm.weight"):
            x = x - 1
        weights[key] = x
    missing = m.load_state_dict(weights, strict=False)
    assert not missing.unexpected_keys and set(missing.missing_keys) <= {"lm_head.weight"}, missing
    meta, _ = model(arch, 2, 64, 4, 2, 16, 96)
    meta |= {f"{arch}.{k}": v for k, v in more.items()}
    return {k: v for k, v in meta.items() if v is not None}, tensors, m


def write(path, meta, tensors):
    w = gguf.GGUFWriter(path, meta["general.architecture"])
    for key, value in meta.items():
        if key != "general.architecture":
            (w.add_uint32 if isinstance(value, int) else w.add_float32)(key, value)
    # transformers asks for a tokenizer, if only for its size
    w.add_token_list([str(i) for i in range(WORDS)])
    for name, shape, kind in tensors:
        w.add_tensor(name, data(name, shape, kind), raw_dtype=gguf.GGMLQuantizationType[kind])
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def make(name):
    if name in OTHERS:
        meta, tensors, m = whole(name)
    else:
        meta, tensors = CASES[name]
        m = read(name, meta, tensors)
    with torch.no_grad():
        logits = m(torch.tensor([TOKENS])).logits[0].float().contiguous()
    with open(os.path.join(HERE, "gguf", name + ".json"), "w") as f:
        json.dump({"metadata": meta, "tensors": tensors}, f, separators=(",", ":"))
    save_file({"logits": logits}, os.path.join(HERE, "gguf", name + ".safetensors"))
    print(name, "range", float(logits.abs().max()), flush=True)


def read(name, meta, tensors):
    """What transformers makes of a file."""
    with tempfile.TemporaryDirectory() as d:
        write(d + "/m.gguf", meta, tensors)
        config = transformers.AutoConfig.from_pretrained(d, gguf_file="m.gguf")
        config._attn_implementation = "eager"
        arch = meta["general.architecture"]
        if arch in ("qwen2moe", "qwen3moe"):
            config.moe_intermediate_size = 32
        config.pad_token_id = None
        if arch == "qwen3":
            config.head_dim = 16
        if arch == "qwen2moe":
            config.shared_expert_intermediate_size = 32
        if name == "phi3_long":
            config.max_position_embeddings, config.original_max_position_embeddings = 128, 64
            config.rope_parameters = {
                "rope_type": "longrope", "rope_theta": 10000.0, "original_max_position_embeddings": 64,
                "attention_factor": 1.0801234, "short_factor": fill("rope_factors_short.weight", (8,)).tolist(),
                "long_factor": fill("rope_factors_long.weight", (8,)).tolist()}
        return transformers.AutoModelForCausalLM.from_pretrained(
            d, gguf_file="m.gguf", config=config, dtype=torch.float32, attn_implementation="eager").eval()


if __name__ == "__main__":
    for name in sys.argv[1:] or [*CASES, *OTHERS]:
        make(name)
