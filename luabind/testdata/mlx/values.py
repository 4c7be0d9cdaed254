"""The numbers of MLX's own tests of nn, losses, optimizers, init, trees and Upsample, and what torch gives where they ask it.

python values.py MLX/python/tests, in luabind/testdata/mlx, writes values.json: the names of the tests of each file; the lists
of numbers that long tests hold, by the name of the variable and how often it was set ("x 1", "x 2" ...); and for the tests
that compare with torch, its answers on arrays given by a formula: see array(). Of a large array there are a weighted sum, the
sum of absolute values and the first elements."""

import ast
import json
import pathlib
import sys

import numpy as np
import torch
import torch.nn.functional as F

FILES = ["nn", "losses", "optimizers", "init", "tree", "upsample"]
LONG = ["test_instance_norm", "test_batch_norm", "test_upsample", "test_pooling"]


def numbers(node):
    """The list that an expression is, or makes an array of; None if it is none."""
    while isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr == "transpose":
            node = node.func.value
        elif node.args and isinstance(node.func, ast.Attribute) and node.func.attr == "array":
            node = node.args[0]
        else:
            return None
    if not isinstance(node, ast.List):
        return None
    return ast.literal_eval(node)


def read(folder):
    names, values = {}, {}
    for file in FILES:
        tree = ast.parse((folder / f"test_{file}.py").read_text())
        tests = [f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) and f.name.startswith("test_")]
        names[file] = [f.name for f in tests]
        for f in tests:
            if f.name not in LONG or file != "nn":
                continue
            found = values.setdefault(f.name, {})
            for s in f.body:
                if isinstance(s, ast.Assign) and (v := numbers(s.value)) is not None:
                    name = s.targets[0].id
                    found[f"{name} {1 + sum(k.rpartition(' ')[0] == name for k in found)}"] = v
    return names, values


def array(shape, seed):
    n = int(np.prod(shape))
    return (((np.arange(n) * 37 + seed * 11) % 101).astype(np.float32) / np.float32(50) - np.float32(1)).reshape(shape)


def summary(x):
    flat = x.astype(np.float64).reshape(-1)
    weights = (np.arange(flat.size) * 29 % 17 - 8) / 8
    return {"shape": list(x.shape), "sum": float((flat * weights).sum()), "size": float(np.abs(flat).sum()),
            "first": [float(f"{v:.8g}") for v in flat[:8]]}


def upsampled(N, C, size, scale, mode, align, antialias):
    x = torch.from_numpy(array((N, *size, C), 1).transpose(0, 3, 1, 2).copy())
    kind = {"nearest": "nearest", "linear": "bilinear", "cubic": "bicubic"}[mode]
    y = F.interpolate(x, scale_factor=scale, mode=kind, align_corners=align if mode != "nearest" else None,
                      **({"antialias": True} if antialias else {}))
    return {"shape": [N, *size, C], "scale": scale, "mode": mode, "align": align, "antialias": antialias,
            "want": summary(y.permute(0, 2, 3, 1).numpy(force=True))}


def upsample_cases():
    plain = [((2, 2), (1.0, 1.0)), ((2, 2), (1.5, 1.5)), ((2, 2), (2.0, 2.0)), ((4, 4), (0.5, 0.5)), ((7, 7), (2.0, 2.0)),
             ((10, 10), (0.2, 0.2)), ((10, 10), (0.3, 0.3)), ((11, 21), (3.0, 3.0)), ((11, 21), (3.0, 2.0))]
    smaller = [((n, n), (s, s)) for n, s in [(4, 0.5), (8, 0.5), (8, 0.25), (16, 0.5), (16, 0.25), (32, 0.5), (32, 0.25),
                                             (64, 0.5), (10, 0.5), (12, 0.25)]]
    smaller += [((8, 16), (0.5, 0.5)), ((16, 8), (0.5, 0.25))]
    out = {"plain": [], "antialias": [], "wider": []}
    for N, C in ((1, 1), (2, 3)):
        for size, scale in plain:
            for mode, align in (("cubic", False), ("cubic", True), ("linear", False), ("linear", True), ("nearest", False)):
                out["plain"].append(upsampled(N, C, size, scale, mode, align, False))
        for size, scale in smaller:
            for mode in ("linear", "cubic"):
                out["antialias"].append(upsampled(N, C, size, scale, mode, False, True))
    for scale in (2.0, 3.0):
        out["wider"].append(upsampled(1, 3, (8, 8), (scale, scale), "cubic", False, True))
    return out


def batch_norms():
    out = []
    for shape, module, there, back in [
        ((5, 4), torch.nn.BatchNorm1d, None, None),
        ((2, 4, 5), torch.nn.BatchNorm1d, (0, 2, 1), (0, 2, 1)),
        ((2, 3, 3, 6), torch.nn.BatchNorm2d, (0, 3, 1, 2), (0, 2, 3, 1)),
    ]:
        x, w, b = array(shape, 1), array(shape[-1:], 2), array(shape[-1:], 3)
        bn = module(shape[-1], eps=1e-5, momentum=0.1)
        with torch.no_grad():
            bn.weight.copy_(torch.from_numpy(w))
            bn.bias.copy_(torch.from_numpy(b))
        x = torch.from_numpy((x.transpose(there) if there else x).copy())

        def call():
            y = bn(x).detach().numpy()
            return summary(np.ascontiguousarray(y.transpose(back) if back else y))

        case = {"shape": list(shape), "train": call(), "mean": bn.running_mean.tolist(), "var": bn.running_var.tolist()}
        bn.eval()
        case["eval"] = call()
        out.append(case)
    return out


def adamw():
    layer = torch.nn.Linear(3, 1)
    layer.weight.data, layer.bias.data = torch.from_numpy(array((1, 3), 1)), torch.from_numpy(array((1,), 2))
    opt = torch.optim.AdamW(layer.parameters(), lr=3e-4)
    torch.nn.MSELoss()(layer(torch.from_numpy(array((3, 3), 3))), torch.from_numpy(array((3, 1), 4))).backward()
    opt.step()
    return {"grad": {"weight": layer.weight.grad.tolist(), "bias": layer.bias.grad.tolist()},
            "after": {"weight": layer.weight.tolist(), "bias": layer.bias.tolist()}}


names, values = read(pathlib.Path(sys.argv[1]))
answers = {"upsample": upsample_cases(), "batch_norm": batch_norms(), "adamw": adamw()}
text = json.dumps({"tests": names, "values": values, "torch": answers}, separators=(",", ":"))
pathlib.Path("values.json").write_text(text.replace('{"shape"', '\n{"shape"').replace('"test_', '\n"test_') + "\n")
