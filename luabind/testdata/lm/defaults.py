"""Makes keys/defaults.json: what transformers answers where config.json leaves a key out, has null for it, or says a key in
the way of transformers 4.

    python defaults.py [name...]

Needs transformers 5.24, torch and safetensors. For each of the models of generate.py and each variant below, every key
of config.json and of its rope_parameters is dropped and set to null in turn. A case is [changes, answer]: changes are
keys and their new values, "-" for none, a path "rope_parameters.factor" for one of a part; answer is a place in the
list of answers, each the logits of WORDS after the last of the tokens, or -1 where transformers refuses the model or
its weights are not those of the file. "classes" has the defaults of the classes themselves, by model_type.
"""

import copy
import dataclasses
import json
import os
import sys
import tempfile
import warnings

import torch
import transformers
from safetensors.torch import save_file

import generate

HERE = os.path.dirname(os.path.abspath(__file__))
WORDS = [0, 17, 34, 51, 68, 85, 102, 119]
SAID = {"architectures", "model_type", "transformers_version", "dtype", "bos_token_id", "eos_token_id", "pad_token_id",
        "initializer_range", "use_cache", "attention_dropout", "_sliding_window_pattern", "pretraining_tp",
        "output_router_logits", "router_aux_loss_coef", "router_jitter_noise", "num_mtp_layers",
        "num_nextn_predict_layers", "resid_pdrop", "embd_pdrop", "attn_pdrop", "residual_dropout", "hidden_dropout",
        "embedding_dropout", "use_bidirectional_attention"}

# variants have settings on that the models of generate.py leave off.
VARIANTS = {
    "qwen2": [{"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1, "layer_types": "-"}],
    "qwen2_moe": [{"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 3, "layer_types": "-"}],
    "qwen3": [{"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 2, "layer_types": "-"}],
    "qwen3_moe": [{"use_sliding_window": True, "sliding_window": 8, "mlp_only_layers": [1], "max_window_layers": 2}],
    "qwen3_next": [{"layer_types": "-", "full_attention_interval": 4}],
    "qwen3_5": [{"layer_types": "-", "full_attention_interval": 4}],
    "qwen3_5_moe": [{"layer_types": "-", "full_attention_interval": 4}, {"norm_topk_prob": False}],
    "smollm3": [{"use_sliding_window": True, "sliding_window": 8, "layer_types": "-"},
                {"no_rope_layers": [1, 0, 0, 1], "layer_types": "-"}],
    "cohere2": [{"sliding_window_pattern": 2, "layer_types": "-"}],
    "gemma2": [{"sliding_window": 6, "layer_types": "-"}],
    "gemma3": [{"sliding_window_pattern": 2, "layer_types": "-"},
               {"rope_parameters": "-", "rope_theta": 5000.0, "rope_local_base_freq": 300.0,
                "rope_scaling": {"rope_type": "linear", "factor": 4.0}},
               {"attn_logit_softcapping": 2.0}, {"final_logit_softcapping": 2.0}],
    "mixtral": [{"sliding_window": 8}],
    "mistral": [{"layer_types": ["full_attention"] * 4}],
    "phi3": [{"sliding_window": 8}, {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}}],
    "llama": [{"sliding_window": 8}],
    "starcoder2": [{"hidden_act": "gelu"}],
    "gemma": [{"hidden_act": "gelu"}],
    "gpt_oss": [{"attention_bias": True, "swiglu_limit": 0.5, "swiglu_alpha": 1.0}],
    "deepseek_v3": [{"rope_interleave": False}, {"topk_method": "greedy"}, {"scoring_func": "softmax"}],
}


BIG = dict(num_hidden_layers=8, hidden_size=64, vocab_size=128, moe_intermediate_size=64,
           num_experts=8, n_routed_experts=8, num_local_experts=8)


def changed(config, changes):
    """config with changes; a path "a.b" is the key b of a."""
    out = copy.deepcopy(config)
    for path, value in changes.items():
        at, *keys = out, *path.split(".")
        for key in keys[:-1]:
            at = at[key]
        if value == "-":
            at.pop(keys[-1], None)
        else:
            at[keys[-1]] = copy.deepcopy(value)
    return out


def old(config):
    """The changes that say rotary settings as transformers 4 did."""
    if "text_config" in config:
        inner = old(config["text_config"])
        return inner and {"text_config." + k: v for k, v in inner.items()}
    rope = config.get("rope_parameters")
    if not rope or "full_attention" in rope:
        return None
    out = {"rope_parameters": "-", "rope_theta": rope["rope_theta"]}
    if "partial_rotary_factor" in rope:
        out["partial_rotary_factor"] = rope["partial_rotary_factor"]
    scaling = {k: v for k, v in rope.items() if k not in ("rope_theta", "partial_rotary_factor")}
    if scaling["rope_type"] != "default":
        out["rope_scaling"] = scaling
    return out


def cases(name, config):
    """All changes for a model."""
    def paths(c):
        if "text_config" in c:
            yield "tie_word_embeddings"
            yield from ("text_config." + path for path in paths(c["text_config"]))
            return
        for key, value in c.items():
            if key not in SAID and not (key == "num_key_value_heads" and "kv_lora_rank" in c):  # it does not count there
                yield key
                if key in ("rope_parameters", "rope_scaling") and isinstance(value, dict):
                    for k, v in value.items():
                        yield key + "." + k
                        if isinstance(v, dict):
                            yield from (f"{key}.{k}.{x}" for x in v)
    seen = set()
    for start in [{}, *VARIANTS.get(name, []), *([old(config)] if old(config) else [])]:
        own = [p for p in paths(changed(config, start))
               if not start or any(p == q or p.startswith(q + ".") for q in start)]
        for more in [{}] + [{p: v} for p in own for v in ("-", None)]:
            merged = {**start, **more}
            key = json.dumps(changed(config, merged), sort_keys=True)
            if key not in seen:
                seen.add(key)
                yield merged


def answer(d, config, arrays, tokens):
    """The logits of WORDS after the last token, or None."""
    with open(os.path.join(d, "config.json"), "w") as f:
        json.dump(config, f)
    try:
        c = transformers.AutoConfig.from_pretrained(d).get_text_config()
        if any((getattr(c, key, 0) or 0) > most for key, most in BIG.items()):
            return None  # other weights than the file's
        cls = getattr(transformers, config["architectures"][0]) if "text_config" in config else \
            transformers.AutoModelForCausalLM
        model, info = cls.from_pretrained(
            d, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
        if any(info[k] for k in ("missing_keys", "unexpected_keys", "mismatched_keys")):
            return None
        with torch.no_grad():
            out = model.eval()(torch.tensor([tokens])).logits[0, -1, WORDS]
        return [float(f"{x:.7g}") for x in out.tolist()] if bool(out.isfinite().all()) else None
    except Exception as e:
        if os.environ.get("SHOW"):
            print("   ", type(e).__name__, str(e)[:200].replace("\n", " "))
        return None


def make(name):
    golden = json.load(open(os.path.join(HERE, name + ".json")))
    with tempfile.TemporaryDirectory() as d:
        arrays = {k: torch.from_numpy(generate.fill(k, s)) for k, s in golden["shapes"].items()}
        save_file(arrays, os.path.join(d, "model.safetensors"), {"format": "pt"})
        answers, out = [], []
        for changes in cases(name, golden["config"]):
            got = answer(d, changed(golden["config"], changes), arrays, TOKENS)
            if got is not None and got not in answers:
                answers.append(got)
            if got is not None or None not in changes.values():  # strict types refuse null where older files have it
                out.append([changes, -1 if got is None else answers.index(got)])
    print(name, len(out), "cases", len(answers), "answers")
    return {"cases": out, "answers": answers}


TOKENS = [3 + (i * i * 7 + 11 * i) % 120 for i in range(24)]


def classes(names):
    """The defaults of the classes, by model_type; rope_parameters is what they make of none."""
    out = {}
    common = {f.name for f in dataclasses.fields(transformers.PreTrainedConfig)}
    for name in names:
        config = json.load(open(os.path.join(HERE, name + ".json")))["config"]
        config = type(transformers.AutoConfig.for_model(config["model_type"]).get_text_config())()
        model_type = config.model_type
        out[model_type] = {f.name: f.default for f in dataclasses.fields(config)
                           if f.name not in common | SAID and f.default is not None
                           and not isinstance(f.default, tuple)}
        out[model_type]["rope_parameters"] = getattr(config, "rope_parameters", None) or {"rope_type": "default"}
    return out


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    names = sys.argv[1:] or list(generate.MODELS)
    path = os.path.join(HERE, "keys", "defaults.json")
    whole = json.load(open(path)) if sys.argv[1:] and os.path.exists(path) else {"models": {}}
    whole["tokens"], whole["words"] = TOKENS, WORDS
    for name in names:
        whole["models"][name] = make(name)
    whole["classes"] = classes(generate.MODELS)
    with open(path, "w") as f:
        json.dump(whole, f, sort_keys=True, separators=(",", ":"))
