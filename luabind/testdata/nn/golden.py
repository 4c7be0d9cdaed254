"""Golden data for mx.nn from the real mlx.nn: python golden.py, in luabind/testdata/nn, writes golden.json.

A case makes a layer after mx.random.seed(7), calls it in training and in evaluation after mx.random.seed(11), and keeps
of each array its shape, its dtype, a weighted sum, the sum of its absolute values and its first elements: of the
parameters, of what the layer gives, and of the gradients of its weighted sum. Arrays are given by formulas: see array().
What evaluation gives, and the parameters after training, are left out where they are what was before."""

import json

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.utils import tree_flatten


def F(*shape, seed=1, scale=1.0, shift=0.0):
    return {"shape": shape, "seed": seed, "scale": scale, "shift": shift}


def I(n, *shape, seed=1):
    return {"shape": shape, "below": n, "seed": seed}


def L(name, *args, **kw):
    return {"layer": name, "args": list(args), "kw": kw}


def formula(n, seed):
    return ((np.arange(n) * 37 + seed * 11) % 101).astype(np.float32) / 50 - 1


def array(spec):
    n = int(np.prod(spec["shape"]))
    if "below" in spec:
        return mx.array(((np.arange(n) * 7 + spec["seed"]) % spec["below"]).astype(np.int32)).reshape(spec["shape"])
    x = mx.array(formula(n, spec["seed"])).reshape(spec["shape"])
    return x * spec["scale"] + spec["shift"]


def value(v):
    if isinstance(v, dict) and "shape" in v:
        return array(v)
    if isinstance(v, dict) and "layer" in v:
        return getattr(nn, v["layer"])(*map(value, v["args"]), **{k: value(x) for k, x in v["kw"].items()})
    if isinstance(v, dict) and "function" in v:
        return getattr(nn, v["function"])
    if isinstance(v, list):
        return tuple(map(value, v))
    return v


def kept(x):
    a = np.array(x.astype(mx.float32)).astype(np.float64).ravel()
    w = ((np.arange(a.size) * 29) % 17 - 8) / 8
    return [list(x.shape), str(x.dtype).split(".")[-1], float(f"{(a * w).sum():.8g}"), float(f"{np.abs(a).sum():.8g}"),
            [float(f"{v:.7g}") for v in a[:3]]]


def named(tree):
    return {k: kept(v) for k, v in tree_flatten(tree)}


def loss_of(outs):
    total = mx.array(0.0)
    for y in outs:
        if mx.issubdtype(y.dtype, mx.floating):
            total = total + (y * mx.array(formula(y.size, 5)).reshape(y.shape)).sum()
    return total


def outputs(y):
    return list(y) if isinstance(y, tuple) else [y]


def run(model, xs, kw):
    floats = [i for i, x in enumerate(xs) if isinstance(x, mx.array) and mx.issubdtype(x.dtype, mx.floating)]
    mx.random.seed(11)
    outs = outputs(model(*xs, **kw))
    result = {"out": [kept(y) for y in outs]}
    if not all(mx.issubdtype(y.dtype, mx.floating) for y in outs):
        return result
    if tree_flatten(model.trainable_parameters()):
        mx.random.seed(11)
        _, grads = nn.value_and_grad(model, lambda *xs: loss_of(outputs(model(*xs, **kw))))(*xs)
        result["parameters"] = named(grads)
    if floats:
        mx.random.seed(11)
        grads = mx.grad(lambda *xs: loss_of(outputs(model(*xs, **kw))), argnums=floats)(*xs)
        result["inputs"] = [kept(g) for g in (grads if len(floats) > 1 else [grads])]
    return result


cases = []


def layer(spec, *inputs, **kw):
    mx.random.seed(7)
    model = value(spec)
    if spec.get("quantize"):
        nn.quantize(model, **spec["quantize"])
    case = {"layer": spec, "inputs": inputs, "kw": kw, "parameters": named(model.parameters())}
    if "nonlinearity" not in spec["kw"] and spec["layer"] != "RNN":
        case["text"] = str(model)
    xs, keywords = [value(x) for x in inputs], {k: value(v) for k, v in kw.items()}
    case["train"] = run(model, xs, keywords)
    if (after := named(model.parameters())) != case["parameters"]:
        case["after"] = after
    model.eval()
    if (result := run(model, xs, keywords)) != case["train"]:
        case["eval"] = result
    cases.append(case)


def loss(name, *inputs, **kw):
    for reduction in ("none", "mean", "sum"):
        f = lambda *xs: getattr(nn.losses, name)(*xs, **{k: value(v) for k, v in kw.items()}, reduction=reduction)
        xs = [array(x) for x in inputs]
        case = {"loss": name, "inputs": inputs, "kw": dict(kw, reduction=reduction), "out": [kept(f(*xs))]}
        case["grad"] = kept(mx.grad(lambda *xs: loss_of([f(*xs)]))(*xs))
        cases.append(case)


def init(name, shape, *args, call=(), **kw):
    mx.random.seed(7)
    x = getattr(nn.init, name)(*args, **kw)(mx.zeros(shape), *call)
    cases.append({"init": name, "args": args, "kw": kw, "shape": shape, "call": call, "out": [kept(x)]})


ACTIVATIONS = ["Sigmoid", "Mish", "ReLU", "ReLU2", "ReLU6", "Softmax", "Softplus", "Softsign", "SiLU", "LogSoftmax",
               "LogSigmoid", "Tanh", "Hardswish", "SELU", "HardTanh", "Softmin", "LeakyReLU", "ELU", "CELU", "Softshrink",
               "HardShrink", "Step", "GLU", "GELU", "PReLU", "Identity"]
for name in ACTIVATIONS:
    layer(L(name), F(3, 4, scale=4.0))
    layer(L(name), F(2, 5, 6, scale=9.0, seed=3))
for name, arg in [("LeakyReLU", 0.2), ("ELU", 0.5), ("CELU", 1.5), ("Softshrink", 0.25), ("HardShrink", 1.0),
                  ("Step", 0.5), ("GLU", 0), ("GELU", "precise"), ("GELU", "tanh"), ("GELU", "fast"), ("PReLU", 4)]:
    layer(L(name, arg), F(6, 4, scale=3.0))

for spec, *inputs in [
    (L("Linear", 3, 4), F(2, 3)), (L("Linear", 5, 2, bias=False), F(2, 3, 5)),
    (L("Bilinear", 3, 4, 2), F(5, 3), F(5, 4, seed=2)), (L("Bilinear", 2, 3, 4, bias=False), F(2, 3, 2), F(2, 3, 3)),
    (L("Embedding", 7, 3), I(7, 5)), (L("Embedding", 11, 4), I(11, 2, 3)),
    (L("Sequential", L("Linear", 4, 8), L("ReLU"), L("LayerNorm", 8), L("Linear", 8, 2)), F(3, 4)),
    (L("Sequential", {"function": "relu"}, L("Dropout", 0.25)), F(3, 4)),
    (L("Dropout"), F(4, 5)), (L("Dropout", 0.1), F(3, 4, 5)), (L("Dropout", 0.0), F(3, 4)),
    (L("Dropout2d"), F(3, 4, 5)), (L("Dropout2d", 0.3), F(2, 3, 4, 5)),
    (L("Dropout3d"), F(2, 3, 4, 5)), (L("Dropout3d", 0.3), F(2, 2, 3, 2, 6)),
    (L("InstanceNorm", 4), F(2, 5, 4)), (L("InstanceNorm", 3, eps=1e-3, affine=True), F(2, 3, 4, 3)),
    (L("LayerNorm", 6), F(4, 6)), (L("LayerNorm", 5, affine=False), F(2, 3, 5)),
    (L("LayerNorm", 5, bias=False), F(3, 5)), (L("RMSNorm", 6), F(4, 6)), (L("RMSNorm", 8, eps=1e-3), F(2, 3, 8)),
    (L("GroupNorm", 2, 6), F(2, 5, 6)), (L("GroupNorm", 3, 6, affine=False), F(2, 3, 4, 6)),
    (L("GroupNorm", 2, 6, pytorch_compatible=True), F(2, 5, 6)),
    (L("GroupNorm", 4, 8, eps=1e-3, pytorch_compatible=True), F(2, 3, 4, 8)),
    (L("BatchNorm", 4), F(5, 4)), (L("BatchNorm", 3, momentum=0.25, eps=1e-3), F(2, 5, 3)),
    (L("BatchNorm", 3, affine=False), F(2, 3, 4, 3)), (L("BatchNorm", 4, track_running_stats=False), F(6, 4)),
    (L("Conv1d", 3, 4, 3), F(2, 8, 3)), (L("Conv1d", 4, 6, 2, stride=2, padding=1, dilation=2, groups=2), F(2, 9, 4)),
    (L("Conv2d", 2, 3, 3), F(2, 6, 5, 2)),
    (L("Conv2d", 4, 4, [3, 2], stride=[2, 1], padding=[1, 0], dilation=2, groups=2, bias=False), F(1, 8, 7, 4)),
    (L("Conv3d", 2, 3, 2), F(1, 4, 5, 3, 2)), (L("Conv3d", 1, 2, [2, 1, 3], stride=2, padding=1), F(1, 5, 4, 6, 1)),
    (L("ConvTranspose1d", 3, 4, 3), F(2, 5, 3)), (L("ConvTranspose1d", 2, 3, 3, stride=2, padding=1, output_padding=1), F(2, 4, 2)),
    (L("ConvTranspose2d", 2, 3, 3), F(2, 4, 3, 2)),
    (L("ConvTranspose2d", 3, 2, [3, 2], stride=2, padding=[1, 0], output_padding=[1, 0], bias=False), F(1, 3, 4, 3)),
    (L("ConvTranspose3d", 2, 3, 2), F(1, 3, 2, 3, 2)), (L("ConvTranspose3d", 1, 2, [2, 3, 2], stride=2, padding=1), F(1, 3, 3, 4, 1)),
    (L("RoPE", 8), F(2, 5, 8)), (L("RoPE", 4, traditional=True, base=100.0, scale=0.5), F(1, 2, 6, 8)),
    (L("SinusoidalPositionalEncoding", 6), F(4, scale=5.0)),
    (L("SinusoidalPositionalEncoding", 8, min_freq=0.01, scale=1.0, cos_first=True, full_turns=True), F(2, 3)),
    (L("SinusoidalPositionalEncoding", 2), F(2, 3)),
    (L("ALiBi"), F(2, 4, 3, 5)), (L("ALiBi"), F(1, 6, 4, 4)), (L("ALiBi"), F(1, 12, 2, 3)),
    (L("RNN", 3, 4), F(2, 5, 3)), (L("RNN", 2, 3, bias=False, nonlinearity={"function": "relu"}), F(4, 2)),
    (L("RNN", 3, 4), F(2, 5, 3), F(2, 4)),
    (L("GRU", 3, 4), F(2, 5, 3)), (L("GRU", 2, 3, bias=False), F(4, 2)), (L("GRU", 3, 4), F(2, 5, 3), F(2, 4)),
    (L("GRU", 3, 4, bias=False), F(2, 5, 3), F(2, 4)),
    (L("LSTM", 3, 4), F(2, 5, 3)), (L("LSTM", 2, 3, bias=False), F(4, 2)), (L("LSTM", 3, 4), F(2, 5, 3), F(2, 4), F(2, 4, seed=4)),
    (L("MultiHeadAttention", 8, 2), F(2, 3, 8), F(2, 4, 8, seed=2), F(2, 4, 8, seed=3)),
    (L("MultiHeadAttention", 6, 3, query_input_dims=4, key_input_dims=5, value_dims=9, value_output_dims=7, bias=True),
     F(1, 3, 4), F(1, 4, 5, seed=2), F(1, 4, 5, seed=3)),
    (L("TransformerEncoderLayer", 8, 2), F(2, 3, 8), None), (L("TransformerEncoderLayer", 6, 3, mlp_dims=5, dropout=0.25,
      activation={"function": "gelu"}, norm_first=False), F(1, 4, 6), F(4, 4, scale=-2.0)),
    (L("TransformerDecoderLayer", 8, 2), F(2, 3, 8), F(2, 4, 8, seed=2), None, None),
    (L("TransformerDecoderLayer", 6, 3, dropout=0.25, norm_first=False), F(1, 3, 6), F(1, 4, 6, seed=2), F(3, 3), F(3, 4)),
    (L("TransformerEncoder", 2, 8, 2, mlp_dims=6), F(2, 3, 8), None),
    (L("TransformerEncoder", 1, 4, 2, norm_first=False, checkpoint=True), F(1, 5, 4), None),
    (L("TransformerDecoder", 2, 8, 2, mlp_dims=6), F(2, 3, 8), F(2, 4, 8, seed=2), None, None),
    (L("TransformerDecoder", 1, 4, 2, checkpoint=True), F(1, 5, 4), F(1, 3, 4, seed=2), None, None),
    (L("Transformer", 8, 2, 1, 2, 6), F(2, 3, 8), F(2, 4, 8, seed=2), None, None, None),
    (L("Transformer", 4, 1, 1, 1, norm_first=False), F(1, 3, 4), F(1, 2, 4, seed=2), F(3, 3), F(2, 2), F(2, 3)),
]:
    layer(spec, *inputs)
layer(L("RoPE", 8), F(2, 5, 8), offset=3)
layer(L("ALiBi"), F(1, 2, 3, 5), offset=2, mask=F(3, 5))
layer(L("MultiHeadAttention", 4, 2), F(1, 3, 4), F(1, 3, 4), F(1, 3, 4), mask=F(3, 3, scale=3.0))

for pool in ("MaxPool", "AvgPool"):
    layer(L(pool + "1d", 2), F(2, 6, 3))
    layer(L(pool + "1d", 3, 2, 1), F(1, 8, 2, shift=-2.0))
    layer(L(pool + "2d", 2), F(2, 4, 6, 3))
    layer(L(pool + "2d", [3, 2], stride=[2, 1], padding=[0, 1]), F(1, 5, 4, 2, shift=-2.0))
    layer(L(pool + "3d", 2), F(1, 4, 2, 4, 2))
    layer(L(pool + "3d", [2, 3, 2], stride=1, padding=1), F(1, 3, 3, 2, 2))
for mode in ("nearest", "linear", "cubic"):
    layer(L("Upsample", 2, mode), F(2, 3, 2))
    layer(L("Upsample", [2, 3], mode), F(1, 3, 4, 2))
    layer(L("Upsample", [1.5, 0.6], mode), F(1, 4, 5, 2))
    layer(L("Upsample", [2, 1.5, 2], mode), F(1, 2, 4, 2, 1))
    if mode != "nearest":
        layer(L("Upsample", 2.5, mode, align_corners=True), F(1, 3, 4, 2))
        layer(L("Upsample", [0.4, 1.5], mode, antialias=True), F(1, 6, 5, 2))
        layer(L("Upsample", 3, mode, antialias=True), F(1, 4, 2))

for mode, group, bits in (("affine", 64, 4), ("affine", 32, 8), ("mxfp4", None, None), ("nvfp4", None, None), ("mxfp8", None, None)):
    kw = {"mode": mode} | ({"group_size": group, "bits": bits} if group else {})
    layer(L("QuantizedLinear", 64, 32, **kw), F(3, 64))
    layer(L("QuantizedLinear", 128, 32, bias=False, **kw), F(1, 2, 128))
    layer(L("QuantizedEmbedding", 9, 64, **kw), I(9, 4))
    layer(L("QuantizedEmbedding", 5, 128, **kw), I(5, 2, 3))
    layer(L("Sequential", L("Embedding", 6, 64), L("Linear", 64, 32), L("ReLU"), L("Linear", 32, 64, bias=False)) |
          {"quantize": {"mode": mode} | ({"group_size": 32, "bits": bits} if group else {})}, I(6, 5))

for kind in ("AllToSharded", "ShardedToAll"):  # of the one process that there is
    layer(L(kind + "Linear", 4, 6), F(3, 4))
    layer(L(kind + "Linear", 5, 2, bias=False), F(2, 3, 5))
    layer(L("Quantized" + kind + "Linear", 64, 32), F(3, 64))
    layer(L("Quantized" + kind + "Linear", 128, 32, bias=False, group_size=32, bits=8), F(2, 128))
for axis in (-1, 1):
    loss("cross_entropy", F(4, 5, scale=3.0), I(5, 4), axis=axis)
loss("cross_entropy", F(2, 5, 3), I(5, 2, 3), axis=1, label_smoothing=0.25)
loss("cross_entropy", F(4, 5, scale=3.0), F(4, 5, scale=0.1, shift=0.2), weights=F(4, shift=2.0))
loss("cross_entropy", F(4, 5), F(4, 5, scale=0.1, shift=0.2), label_smoothing=0.1)
loss("binary_cross_entropy", F(3, 4, scale=3.0), F(3, 4, scale=0.5, shift=0.5, seed=2))
loss("binary_cross_entropy", F(5, scale=0.4, shift=0.5), F(5, scale=0.5, shift=0.5, seed=2), with_logits=False, weights=F(5, shift=2.0))
for name in ("l1_loss", "mse_loss", "smooth_l1_loss", "hinge_loss", "huber_loss", "log_cosh_loss"):
    loss(name, F(3, 4, scale=2.0), F(3, 4, seed=2))
    loss(name, F(2, 3, 5, scale=3.0), F(2, 3, 5, seed=3))
loss("smooth_l1_loss", F(3, 4, scale=2.0), F(3, 4, seed=2), beta=0.5)
loss("huber_loss", F(3, 4, scale=2.0), F(3, 4, seed=2), delta=0.5)
loss("nll_loss", F(4, 5), I(5, 4))
loss("nll_loss", F(2, 5, 3), I(5, 2, 3), axis=1)
loss("gaussian_nll_loss", F(3, 4), F(3, 4, seed=2), F(3, 4, seed=3, shift=1.5))
loss("gaussian_nll_loss", F(5), F(5, seed=2), F(5, seed=3), full=True, eps=0.1)
loss("kl_div_loss", F(3, 4), F(3, 4, seed=2))
loss("kl_div_loss", F(2, 3, 4), F(2, 3, 4, seed=2), axis=1)
loss("triplet_loss", F(3, 4), F(3, 4, seed=2), F(3, 4, seed=3))
loss("triplet_loss", F(3, 4), F(3, 4, seed=2), F(3, 4, seed=3), axis=0, p=3, margin=0.5, eps=1e-3)
loss("cosine_similarity_loss", F(3, 4), F(3, 4, seed=2))
loss("cosine_similarity_loss", F(2, 3, 4), F(2, 3, 4, seed=2), axis=2)
loss("margin_ranking_loss", F(5), F(5, seed=2), F(5, seed=3))
loss("margin_ranking_loss", F(2, 3), F(2, 3, seed=2), F(2, 3, seed=3), margin=0.5)

for shape in ((4, 4), (3, 5), (2, 3, 4)):
    init("constant", shape, 0.5)
    init("normal", shape)
    init("normal", shape, mean=1.0, std=0.5)
    init("uniform", shape)
    init("uniform", shape, -1.0, 2.0)
    init("glorot_normal", shape)
    init("glorot_uniform", shape, call=(2.0,))
    init("he_normal", shape)
    init("he_normal", shape, call=("fan_out",))
    init("he_uniform", shape, call=("fan_out", 0.5))
    if len(shape) == 2:
        init("sparse", shape, 0.4)
        init("orthogonal", shape, 2.0)
init("identity", (4, 4))
init("sparse", (6, 10), 0.25, mean=1.0, std=0.1)

with open("golden.json", "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")
