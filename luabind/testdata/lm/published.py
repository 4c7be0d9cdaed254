"""Makes keys/published.json and keys/partly.json. The first is a tiny Qwen3.5 mixture in the layout of the published files, and what transformers and mlx-lm
answer to it.

    python published.py

Needs what generate.py and peer.py need. The settings of the text are in text_config, without norm_topk_prob, beside
those of pictures; experts are in one array, and there are weights for pictures and for predicting several tokens.
"logits" are transformers', "packed" mlx-lm's of what `mlx_lm.convert -q` makes of it, both of WORDS after the last of
the tokens; "quantization" is what mlx-lm writes to config.json, "names" are the weights it packs and keeps. The second
is the model qwen3 of generate.py, whose feed-forward parts have rows of 96, so that mlx-lm packs only a part.
"""

import json
import os
import tempfile
from pathlib import Path

import mlx.core as mx
import mlx_lm.utils
import torch
import transformers
from mlx.utils import tree_flatten
from safetensors.torch import save_file

import generate
from defaults import TOKENS, WORDS

mx.disable_compile()
TEXT = dict(hidden_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=32,
            vocab_size=128, max_position_embeddings=512, num_experts=4, num_experts_per_tok=2,
            moe_intermediate_size=128, shared_expert_intermediate_size=128, linear_num_key_heads=2,
            linear_num_value_heads=4, linear_key_head_dim=32, linear_value_head_dim=32, linear_conv_kernel_dim=4,
            layer_types=["linear_attention", "full_attention"], full_attention_interval=2, hidden_act="silu",
            model_type="qwen3_5_moe_text", mamba_ssm_dtype="float32", mtp_num_hidden_layers=1, attn_output_gate=True,
            mtp_use_dedicated_embeddings=False, rms_norm_eps=1e-6, eos_token_id=1, attention_bias=False,
            mlp_only_layers=[], tie_word_embeddings=False, partial_rotary_factor=0.25,
            rope_parameters={"mrope_interleaved": True, "mrope_section": [2, 1, 1], "rope_theta": 10000000,
                             "rope_type": "default", "partial_rotary_factor": 0.25})
PICTURES = dict(depth=1, hidden_size=32, intermediate_size=32, num_heads=2, patch_size=4, num_position_embeddings=16,
                out_hidden_size=128, spatial_merge_size=2, temporal_patch_size=2, in_channels=3,
                deepstack_visual_indexes=[], model_type="qwen3_5_moe", hidden_act="gelu_pytorch_tanh")
CONFIG = dict(architectures=["Qwen3_5MoeForConditionalGeneration"], model_type="qwen3_5_moe", image_token_id=120,
              video_token_id=121, vision_start_token_id=122, vision_end_token_id=123, tie_word_embeddings=False,
              text_config=TEXT, vision_config=PICTURES)
MTP = {"mtp.fc.weight": [128, 256], "mtp.norm.weight": [128], "mtp.layers.0.mlp.experts.down_proj": [4, 128, 128],
       "mtp.pre_fc_norm_hidden.weight": [128]}



def peers(d):
    """mlx-lm's logits for a directory, and what it makes of it packed."""
    peer, settings = mlx_lm.utils.load_model(Path(d))
    plain = peer(mx.array([TOKENS]))[0, -1].astype(mx.float32)
    peer, settings = mlx_lm.utils.quantize_model(peer, settings, 64, 4)
    scores = peer(mx.array([TOKENS]))[0, -1].astype(mx.float32)
    names = sorted(k for k, _ in tree_flatten(peer.parameters()))
    return [plain[i].item() for i in WORDS], {"packed": [scores[i].item() for i in WORDS], "names": names,
                                              "quantization": settings["quantization"]}


def write(d, config, shapes):
    with open(os.path.join(d, "config.json"), "w") as f:
        json.dump(config, f)
    arrays = {k: torch.from_numpy(generate.fill(k, s)) for k, s in shapes.items()}
    save_file(arrays, os.path.join(d, "model.safetensors"), {"format": "pt"})
    return arrays


def keep(name, out):
    with open(os.path.join(generate.HERE, "keys", name), "w") as f:
        json.dump(dict(out, tokens=TOKENS, words=WORDS), f, sort_keys=True, separators=(",", ":"))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as d:
        write(d, CONFIG, MTP)
        config = transformers.AutoConfig.from_pretrained(d)
        config._attn_implementation = "eager"
        model = transformers.Qwen3_5MoeForConditionalGeneration(config).eval()
        shapes = {k: list(v.shape) for k, v in model.state_dict().items()} | MTP
        arrays = write(d, CONFIG, shapes)
        model.load_state_dict({k: v for k, v in arrays.items() if k not in MTP})
        with torch.no_grad():
            logits = model(torch.tensor([TOKENS])).logits[0, -1, WORDS].tolist()
        plain, out = peers(d)
        print("mlx-lm differs by", max(abs(a - b) for a, b in zip(logits, plain)))
        keep("published.json", dict(out, config=CONFIG, shapes=shapes, logits=logits))
    with tempfile.TemporaryDirectory() as d:
        golden = json.load(open(os.path.join(generate.HERE, "qwen3.json")))
        golden["config"]["rope_theta"] = golden["config"].pop("rope_parameters")["rope_theta"]  # mlx-lm's key
        write(d, golden["config"], golden["shapes"])
        plain, out = peers(d)
        keep("partly.json", dict(out, config=golden["config"], shapes=golden["shapes"], logits=plain))
