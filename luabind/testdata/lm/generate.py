"""Makes the golden files beside it: tiny models of transformers and what they answer.

    python generate.py [name...]

Needs transformers, torch and safetensors: config.json says whether a file is of transformers 5.23 or 5.24. For each model
NAME.json holds config.json and the names and shapes of the weights as save_pretrained writes them, NAME.safetensors two
prompts and the logits after each of their tokens in float32, after the short one of 32 words only. The weights
themselves are not kept: every element is drawn anew by fill, here and in weights.lua alike.
"""

import json
import os
import sys
import tempfile

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file
import transformers

HERE = os.path.dirname(os.path.abspath(__file__))
COMMON = dict(hidden_size=64, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
              intermediate_size=96, vocab_size=128, max_position_embeddings=512, bos_token_id=0, eos_token_id=1,
              pad_token_id=0)
UNSAID = {k: v for k, v in COMMON.items() if k != "head_dim"}  # the size of a head follows
MOE = dict(num_experts=8, num_experts_per_tok=3, moe_intermediate_size=32, norm_topk_prob=True)
UNSAID_MOE = {k: v for k, v in MOE.items() if k != "norm_topk_prob"}  # which has no such key
LINEAR = dict(linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=32, linear_value_head_dim=16,
              linear_conv_kernel_dim=4)
HALVES = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}
YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 8.0, "beta_fast": 32.0, "beta_slow": 1.0,
        "original_max_position_embeddings": 64}
SHARED = dict(num_hidden_layers=6, global_head_dim=32, vocab_size_per_layer_input=128, sliding_window=8,
              layer_types=["sliding_attention", "full_attention"] * 3)
GROUPED = dict(n_routed_experts=8, num_experts_per_tok=3, n_group=4, topk_group=2, n_shared_experts=1,
               moe_intermediate_size=32, routed_scaling_factor=1.5)
LATENT = dict(q_lora_rank=24, kv_lora_rank=32, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=16)
CONVS = ["conv", "full_attention", "conv", "full_attention"]
LINEAR_FULL = ["linear_attention", "full_attention"] * 2
MAMBA = dict(mamba_n_heads=8, mamba_d_head=16, mamba_n_groups=2, mamba_d_state=32, mamba_chunk_size=8)
MROPE = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [4, 2, 2]}
PICTURES = dict(depth=1, num_heads=2, patch_size=2)
PICTURES3 = dict(PICTURES, hidden_size=32, intermediate_size=32, out_hidden_size=64, num_position_embeddings=16,
                 deepstack_visual_indexes=[])

MODELS = {
    "llama": ("Llama", dict(COMMON, rope_parameters=LLAMA3, attention_bias=True, mlp_bias=True)),
    "llama_linear": ("Llama", dict(COMMON, tie_word_embeddings=True,
                                   rope_parameters={"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0})),
    "llama_dynamic": ("Llama", dict(COMMON, max_position_embeddings=16,
                                    rope_parameters={"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0})),
    "llama_yarn": ("Llama", dict(COMMON, rope_parameters=YARN)),
    "llama_longrope": ("Llama", dict(COMMON, max_position_embeddings=64, rope_parameters={
        "rope_type": "longrope", "rope_theta": 10000.0, "original_max_position_embeddings": 32,
        "short_factor": [1 + 0.1 * i for i in range(8)], "long_factor": [1.5 + 0.5 * i for i in range(8)]})),
    "mistral": ("Mistral", dict(COMMON, sliding_window=8)),
    "qwen3": ("Qwen3", dict(COMMON)),
    "qwen3_moe": ("Qwen3Moe", dict(COMMON, **MOE, mlp_only_layers=[1])),
    "qwen3_next": ("Qwen3Next", dict(COMMON, **MOE, **LINEAR, shared_expert_intermediate_size=32,
                                     rope_parameters=HALVES)),
    "qwen3_5": ("Qwen3_5Text", dict(COMMON, **LINEAR, rope_parameters=HALVES)),
    "qwen3_5_moe": ("Qwen3_5MoeText", dict(COMMON, **UNSAID_MOE, **LINEAR, shared_expert_intermediate_size=32,
                                           rope_parameters=HALVES)),
    "gemma3": ("Gemma3Text", dict(COMMON, num_hidden_layers=6, sliding_window=8, query_pre_attn_scalar=16,
                                  tie_word_embeddings=True)),
    "gemma3n": ("Gemma3nText", dict(COMMON, num_hidden_layers=6, num_kv_shared_layers=2, sliding_window=8,
                                    laurel_rank=8, hidden_size_per_layer_input=8, vocab_size_per_layer_input=120,
                                    layer_types=["sliding_attention", "full_attention"] * 3, altup_num_inputs=3,
                                    activation_sparsity_pattern=[0.7] + [0.0] * 5)),
    "gemma4": ("Gemma4Text", dict(COMMON, **SHARED, hidden_size_per_layer_input=8, use_double_wide_mlp=True,
                                  num_kv_shared_layers=2)),
    "gemma4_moe": ("Gemma4Text", dict(COMMON, **SHARED, hidden_size_per_layer_input=0, attention_k_eq_v=True,
                                      num_global_key_value_heads=1, enable_moe_block=True, num_experts=4,
                                      top_k_experts=2, moe_intermediate_size=32, final_logit_softcapping=3.0)),
    "glm4_moe": ("Glm4Moe", dict(COMMON, **GROUPED, attention_bias=True, use_qk_norm=True, rope_parameters=HALVES)),
    "glm4_moe_lite": ("Glm4MoeLite", dict(UNSAID, **GROUPED, **LATENT, num_key_value_heads=4,
                                          mlp_layer_types=["dense", "sparse", "dense", "sparse"])),
    "llama4": ("Llama4Text", dict(COMMON, intermediate_size_mlp=64, num_local_experts=4, num_experts_per_tok=1,
                                  interleave_moe_layer_step=2, attention_chunk_size=8, floor_scale=4)),
    "ministral3": ("Ministral3", dict(COMMON, rope_parameters=dict(YARN, llama_4_scaling_beta=0.2, mscale=1.0,
                                                                   original_max_position_embeddings=6,
                                                                   mscale_all_dim=1.0))),
    "mistral3": ("Mistral3", dict(text_config=dict(COMMON, model_type="mistral", sliding_window=None),
                                  vision_config=dict(
        model_type="pixtral", hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        head_dim=16, image_size=8, patch_size=4))),
    "qwen2_vl": ("Qwen2VL", dict(text_config=dict(UNSAID, rope_parameters=MROPE), vision_config=dict(
        PICTURES, embed_dim=32, hidden_size=64, mlp_ratio=1))),
    "qwen2_5_vl": ("Qwen2_5_VL", dict(text_config=dict(UNSAID, rope_parameters=MROPE), vision_config=dict(
        PICTURES, hidden_size=32, intermediate_size=32, out_hidden_size=64, fullatt_block_indexes=[0]))),
    "qwen3_vl": ("Qwen3VL", dict(text_config=dict(COMMON, rope_parameters=dict(MROPE, mrope_interleaved=True)),
                                 vision_config=PICTURES3)),
    "qwen3_vl_moe": ("Qwen3VLMoe", dict(text_config=dict(
        COMMON, num_experts=8, num_experts_per_tok=3, moe_intermediate_size=48, mlp_only_layers=[1],
        tie_word_embeddings=False, rope_parameters=dict(MROPE, mrope_interleaved=True)), vision_config=PICTURES3)),
    "lfm2": ("Lfm2", dict(UNSAID, block_multiple_of=32, block_ffn_dim_multiplier=1.2, layer_types=CONVS)),
    "lfm2_moe": ("Lfm2Moe", dict(UNSAID, num_experts=8, num_experts_per_tok=3, moe_intermediate_size=32,
                                 num_dense_layers=1, routed_scaling_factor=1.5, conv_bias=True, layer_types=CONVS)),
    "granitemoehybrid": ("GraniteMoeHybrid", dict(UNSAID, **MAMBA, layer_types=LINEAR_FULL, num_local_experts=6,
                                                  num_experts_per_tok=2, shared_intermediate_size=48,
                                                  embedding_multiplier=6.0, attention_multiplier=0.3,
                                                  residual_multiplier=0.4, logits_scaling=2.5)),
    "granite_dense": ("GraniteMoeHybrid", dict(UNSAID, **MAMBA, layer_types=LINEAR_FULL, num_local_experts=0,
                                               shared_intermediate_size=96, position_embedding_type="rope",
                                               attention_multiplier=0.3)),
    "nemotron_h": ("NemotronH", dict(COMMON, **GROUPED, moe_shared_expert_intermediate_size=48, mamba_num_heads=8,
                                     mamba_head_dim=16, ssm_state_size=32, n_groups=2, chunk_size=8,
                                     layers_block_type=["linear_attention", "moe", "full_attention", "mlp"])),
    "mamba2": ("Mamba2", dict(hidden_size=64, num_hidden_layers=3, vocab_size=128, num_heads=8, head_dim=16,
                              state_size=32, n_groups=2, chunk_size=8, bos_token_id=0, eos_token_id=1,
                              pad_token_id=0)),
    "olmo3": ("Olmo3", dict(UNSAID, sliding_window=8)),
    "olmoe": ("Olmoe", dict(UNSAID, num_experts=8, num_experts_per_tok=3, norm_topk_prob=True, clip_qkv=0.6)),
    "phi": ("Phi", dict(UNSAID, qk_layernorm=True)),
    "gpt2": ("GPT2", dict(n_embd=64, n_layer=4, n_head=4, n_positions=64, vocab_size=128, bos_token_id=0,
                          eos_token_id=1)),
    "gpt_neox": ("GPTNeoX", dict({k: v for k, v in UNSAID.items() if k != "num_key_value_heads"}, rope_parameters={
        "rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5})),
    "gpt_neox_serial": ("GPTNeoX", dict({k: v for k, v in UNSAID.items() if k != "num_key_value_heads"},
                                        use_parallel_residual=False, attention_bias=False)),
    "exaone4": ("Exaone4", dict(UNSAID, sliding_window=8, sliding_window_pattern=2)),
    "ernie4_5_moe": ("Ernie4_5_Moe", dict(UNSAID, moe_num_experts=8, moe_k=3, moe_intermediate_size=32,
                                          moe_num_shared_experts=1, moe_layer_start_index=1, moe_layer_interval=2)),
    "deepseek_v2": ("DeepseekV2", dict(
        UNSAID, **{k: v for k, v in GROUPED.items()}, **LATENT, num_key_value_heads=4, first_k_dense_replace=1,
        topk_method="group_limited_greedy", norm_topk_prob=False)),
    "minimax_m2": ("MiniMaxM2", dict(COMMON, num_local_experts=6, num_experts_per_tok=2, rope_parameters=HALVES)),
    "gpt_oss": ("GptOss", dict(COMMON, num_local_experts=8, num_experts_per_tok=3, sliding_window=8,
                               rope_parameters=dict(YARN, truncate=False))),
    "deepseek_v3": ("DeepseekV3", dict(
        UNSAID, num_key_value_heads=4, q_lora_rank=24, kv_lora_rank=32,
        qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=16, n_routed_experts=8, num_experts_per_tok=3, n_group=4,
        topk_group=2, n_shared_experts=1, first_k_dense_replace=1, moe_intermediate_size=32, norm_topk_prob=True,
        routed_scaling_factor=1.5, rope_parameters=dict(YARN, mscale=1.0, mscale_all_dim=0.7))),
    "qwen2": ("Qwen2", dict(COMMON, use_sliding_window=True, sliding_window=8, max_window_layers=2)),
    "qwen2_moe": ("Qwen2Moe", dict(COMMON, **MOE, mlp_only_layers=[1], shared_expert_intermediate_size=48)),
    "phi3": ("Phi3", dict(UNSAID, max_position_embeddings=64,
                          original_max_position_embeddings=32, rope_parameters={
        "rope_type": "longrope", "rope_theta": 10000.0, "original_max_position_embeddings": 32,
        "short_factor": [1 + 0.1 * i for i in range(8)], "long_factor": [1.5 + 0.5 * i for i in range(8)]})),
    "gemma": ("Gemma", dict(COMMON, num_key_value_heads=1)),
    "gemma2": ("Gemma2", dict(COMMON, sliding_window=8, query_pre_attn_scalar=24, attn_logit_softcapping=2.0,
                              final_logit_softcapping=3.0)),
    "olmo2": ("Olmo2", dict(UNSAID)),
    "smollm3": ("SmolLM3", dict(COMMON, no_rope_layer_interval=2)),
    "granite": ("Granite", dict(UNSAID, embedding_multiplier=6.0,
                                attention_multiplier=0.3, residual_multiplier=0.4, logits_scaling=2.5)),
    "mixtral": ("Mixtral", dict(COMMON, num_local_experts=6, num_experts_per_tok=2)),
    "glm": ("Glm", dict(COMMON, attention_bias=True, rope_parameters=HALVES)),
    "glm4": ("Glm4", dict(COMMON, attention_bias=True, rope_parameters=HALVES)),
    "cohere": ("Cohere", dict(UNSAID, use_qk_norm=True,
                              logit_scale=0.3)),
    "cohere2": ("Cohere2", dict(COMMON, sliding_window=8, logit_scale=0.3, layer_norm_eps=1e-5)),
    "starcoder2": ("Starcoder2", dict(UNSAID, sliding_window=8)),
    "stablelm": ("StableLm", dict(UNSAID, use_qkv_bias=True)),
    "stablelm_parallel": ("StableLm", dict(UNSAID, use_parallel_residual=True)),
    "ernie4_5": ("Ernie4_5", dict(COMMON, use_bias=True)),
    "seed_oss": ("SeedOss", dict(COMMON, attention_bias=True, attention_out_bias=False)),
}


def fill(name, shape):
    """The weight of a name: matrices of +-0.14, vectors of 0.5 +- 0.3, from a hash of the name and the place."""
    seed = 0
    for c in name.encode():
        seed = (seed * 31 + c) % 2147483647
    x = np.arange(int(np.prod(shape)), dtype=np.uint32) * np.uint32(2654435761) + np.uint32(seed)
    x = (x ^ (x >> np.uint32(15))) * np.uint32(2246822519)
    x = (x ^ (x >> np.uint32(13))) * np.uint32(3266489917)
    x = x ^ (x >> np.uint32(16))
    u = (x >> np.uint32(8)).astype(np.float32) * np.float32(2**-23) - np.float32(1)
    y = u * np.float32(0.14) if len(shape) > 1 else u * np.float32(0.3) + np.float32(0.5)
    return y.reshape(shape)


def save(kind, settings, d):
    """Writes a model with drawn weights to a directory; gives its class, config.json and the shapes of its weights."""
    config = getattr(transformers, kind + "Config")(**settings)
    config._attn_implementation = "eager"
    head = "ForConditionalGeneration" if "text_config" in settings else "ForCausalLM"
    name = "GPT2LMHeadModel" if kind == "GPT2" else kind.removesuffix("Text") + head
    model = getattr(transformers, name)(config).eval()
    model.save_pretrained(d)
    path = os.path.join(d, "model.safetensors")
    with safe_open(path, "np") as f:
        shapes = {k: f.get_slice(k).get_shape() for k in f.keys()}
    save_file({k: torch.from_numpy(fill(k, s)) for k, s in shapes.items()}, path, {"format": "pt"})
    return type(model), json.load(open(os.path.join(d, "config.json"))), shapes


def make(name):
    kind, settings = MODELS[name]
    with tempfile.TemporaryDirectory() as d:
        cls, config_json, shapes = save(kind, settings, d)
        model = cls.from_pretrained(d, dtype=torch.float32, attn_implementation="eager").eval()
    out = {}
    rng = np.random.RandomState(7)
    for key, length in ("long", 24), ("short", 13):
        tokens = rng.randint(2, 128, (1, length))
        with torch.no_grad():
            logits = model(torch.tensor(tokens)).logits[0]
        out[key + ".tokens"] = torch.tensor(tokens[0], dtype=torch.int32)
        out[key + ".logits"] = logits.float()[:, :None if key == "long" else 32].contiguous()  # files are to be small
    save_file(out, os.path.join(HERE, name + ".safetensors"))
    with open(os.path.join(HERE, name + ".json"), "w") as f:
        json.dump({"config": config_json, "shapes": shapes}, f, sort_keys=True, separators=(",", ":"))
    print(name, "range", float(out["long.logits"].abs().max()), "weights", len(shapes))


if __name__ == "__main__":
    for name in sys.argv[1:] or MODELS:
        make(name)
