"""Golden data for dtypes that no other family tries: python golden/dtypes.py, in tensor/optest, after the other scripts.

Calls that the other families recorded are made again with every other dtype of the arrays that are given for a parameter:
one call for each parameter that takes arrays. So there is MLX's result or refusal for each of the 14 dtypes.
"""

import base64
import json
import math

import mlx.core as mx
import numpy as np

import golden
from golden import ALL, Dtype, In, Of, call, parameters

# In quantized.py, since MLX adds products of half types up in these; and what has no array of numbers to compute with.
ELSEWHERE = {"quantized_matmul", "gather_qmm", "qqmm", "gather_qqmm", "einsum_path", "random.bits"}
FAMILY = "dtypes"
# What MLX takes and mlxlua refuses, or the other way around, as tensor/ops/WHY.md says: function, parameter, dtypes.
DIFFERENT = {
    ("hadamard_transform", "a"): ["float64", "complex64"],
    ("floor_divide", "a"): ["complex64"],
    ("convolve", "a"): ["complex64"],
    ("fft.istft", "window"): ["complex64", "bfloat16"],  # MLX squares a window in its own dtype: here in float32
    ("fft.stft", "window"): ["bfloat16"],
    ("fast.gated_delta_update", "q"): ["complex64"],
    ("fast.gated_delta_update", "initial_state"): ["complex64"],
    ("logcumsumexp", "a"): ["float64"],  # in scans.py
}
# MLX's results of these are float64, but good to single precision only.
SINGLE = {("fft.istft", "window", "float64"), ("fast.scaled_dot_product_attention", "sinks", "float64"),
          ("random.multivariate_normal", "mean", "float64")}


def recorded_calls():
    """The calls of the other families, by function."""
    calls = {}
    for file in sorted((golden.HERE / "../testdata").glob("*.json")):
        for c in json.load(open(file)).get("Calls", []) if file.stem != FAMILY else []:
            calls.setdefault(c["Fn"], []).append(c)
    return calls


def given(v, ins):
    """An argument of golden.call's, of what golden.recorded wrote."""
    if isinstance(v, list):
        return [given(x, ins) for x in v]
    if not isinstance(v, dict):
        return v
    if "in" in v:
        return ins[v["in"]]
    if "dtype" in v:
        return Dtype(v["dtype"])
    if "number" in v:
        return float(v["number"])
    args, kwargs = arguments(v["call"], v["args"], ins)
    return Of(v["call"], *args, **kwargs)


def arguments(name, pairs, ins, most=math.inf):
    """Those in the order of MLX's parameters by position, but at most so many, and the others by name."""
    known, args, kwargs = parameters(name), [], {}
    for k, v in pairs:
        v, i = given(v, ins), len(args)
        if not kwargs and i < len(known) and known[i] == "*" + k:
            args += v
        elif not kwargs and i < min(len(known), most) and known[i] == k:
            args.append(v)
        else:
            kwargs[k] = v
    return args, kwargs


def accepted(name, c, case):
    """How many arguments MLX takes by position: its functions differ, and the recorded calls do not tell."""
    ins = [made(t) for t in case["In"]]
    e = golden.Evaluation(ins, None)
    for most in range(len(c["Args"]), -1, -1):
        args, kwargs = arguments(name, c["Args"], ins, most)
        try:
            golden.resolve(name)(*[e.value(v) for v in args], **{k: e.value(v) for k, v in kwargs.items()})
        except TypeError:
            continue
        return most
    raise ValueError(f"MLX does not take {name} of {case}")


def inputs_in(v):
    """The numbers of the inputs within a recorded argument."""
    if isinstance(v, list):
        return {i for x in v for i in inputs_in(x)}
    if not isinstance(v, dict):
        return set()
    return {v["in"]} if "in" in v else inputs_in(v.get("args", []))


def made(text, dtype=None):
    shape, own, *gen = text.split(" ")
    shape = tuple(int(n) for n in shape[1:-1].split(",") if n)
    if len(gen) == 1:  # the elements themselves
        held = np.frombuffer(base64.b64decode(gen[0]), "uint16" if own == "bfloat16" else own).reshape(shape)
        x = mx.array(held).view(mx.bfloat16) if own == "bfloat16" else mx.array(held, dtype=golden.mlx_dtype(own))
        return In.of(x if dtype is None else x.astype(golden.mlx_dtype(dtype)))
    lo, hi = float(gen[1]), float(gen[2])
    if gen[0] == "ints" and dtype not in (None, own):  # which all dtypes hold
        lo, hi = max(lo, 0), min(hi, 100)
    return In(shape, (gen[0], lo, hi), dtype or own)


def plain(case):
    """Whether a case has inputs, with elements of no special kind, and a result."""
    texts = [t.split(" ") for t in case["In"]]
    return texts and not case.get("Refused") and all("(0" not in t[0] and ",0" not in t[0] and t[2] != "special"
                                                     for t in texts)


def simple(c):
    """Inputs by formulas stand first, matrices before what has fewer dimensions, and small ones before large ones."""
    shapes = [[int(n) for n in t.split(" ")[0][1:-1].split(",") if n] for t in c[1]["In"]]
    formulas = all(len(t.split(" ")) == 5 for t in c[1]["In"])
    return not formulas, max(map(len, shapes)) < 2, sum(map(math.prod, shapes)) > 500


def vary(name, calls):
    """The calls of a function with dtypes that it has no results of: a dtype, the arguments, and how close to come."""
    seen, tried = set(), {}
    for c in calls:
        for case in c["Cases"]:
            for k, v in c["Args"]:
                for i in inputs_in(v):
                    if not case.get("Refused") and not (isinstance(v, dict) and "call" in v):
                        tried.setdefault(k, set()).add(case["In"][i].split(" ")[1])
    candidates = [(c, case) for c in calls for case in c["Cases"] if plain(case)]
    candidates.sort(key=simple)  # else in the order of the families
    for c, case in candidates:
        holds = {k: inputs_in(v) for k, v in c["Args"]}
        for k in holds:
            if not holds[k] or k in seen:
                continue
            seen.add(k)
            most = accepted(name, c, case)
            own = {case["In"][i].split(" ")[1] for i in holds[k]}
            # Arrays of the same dtype change together, so that what must have one dtype has.
            alike = [other for other in holds if {case["In"][i].split(" ")[1] for i in holds[other]} == own]
            for d in ALL:
                if d in tried.get(k, ()) or any(d in DIFFERENT.get((name, other), ()) for other in alike):
                    continue
                for other in alike:
                    tried.setdefault(other, set()).add(d)
                ins = [made(t, d if t.split(" ")[1] in own else None) for t in case["In"]]
                args, kwargs = arguments(name, c["Args"], ins, most)
                exact = not case["Out"][0].endswith("?") and (name, k, d) not in SINGLE
                yield d, args, kwargs, {"ulp": c.get("ULP"), "tol": c.get("Tol"), "values": exact}


if __name__ == "__main__":
    for name, calls in recorded_calls().items():
        if name not in ELSEWHERE:
            for d, args, kwargs, close in vary(name, calls):
                call(name, *args, dtypes=[d], **close, **kwargs)
    golden.write(FAMILY)
