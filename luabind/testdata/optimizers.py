"""What mlx.optimizers gives: ten steps of each optimizer, schedules, clipped gradients, flat trees.

python testdata/optimizers.py, in luabind. Each case has the text that makes the optimizer in Python and in Lua.
"""

import json
import pathlib

import mlx.core as mx
import mlx.optimizers as optim
from mlx.utils import tree_flatten, tree_unflatten

mx.set_default_device(mx.cpu)

SCHEDULES = {
    "exponential_decay(0.1, 0.9)": "exponential_decay(0.1, 0.9)",
    "exponential_decay(2.0, 1.0)": "exponential_decay(2, 1)",
    "step_decay(0.1, 0.5, 3)": "step_decay(0.1, 0.5, 3)",
    "cosine_decay(0.1, 15)": "cosine_decay(0.1, 15)",
    "cosine_decay(0.1, 7, end=0.01)": "cosine_decay(0.1, 7, {['end'] = 0.01})",
    "linear_schedule(0, 1e-1, 12)": "linear_schedule(0, 1e-1, 12)",
    "linear_schedule(20.0, 0.0, 10)": "linear_schedule(20, 0, 10)",
    "join_schedules([optim.linear_schedule(0, 0.1, 5), optim.cosine_decay(0.1, 9), optim.step_decay(0.01, 0.5, 2)], [5, 14])":
        "join_schedules({optim.linear_schedule(0, 0.1, 5), optim.cosine_decay(0.1, 9), optim.step_decay(0.01, 0.5, 2)}, {5, 14})",
}
OPTIMIZERS = {
    "SGD(0.1)": "SGD(0.1)",
    "SGD(0.1, momentum=0.9, weight_decay=0.01)": "SGD(0.1, {momentum = 0.9, weight_decay = 0.01})",
    "SGD(0.1, momentum=0.9, dampening=0.5)": "SGD(0.1, 0.9, 0, 0.5)",
    "SGD(learning_rate=0.1, momentum=0.8, nesterov=True)": "SGD{learning_rate = 0.1, momentum = 0.8, nesterov = true}",
    "SGD(optim.linear_schedule(0.1, 0.01, 6))": "SGD(optim.linear_schedule(0.1, 0.01, 6))",
    "RMSprop(0.05)": "RMSprop(0.05)",
    "RMSprop(0.05, alpha=0.9, eps=1e-3)": "RMSprop(0.05, {alpha = 0.9, eps = 1e-3})",
    "Adagrad(0.05)": "Adagrad(0.05)",
    "AdaDelta(1.0)": "AdaDelta(1)",
    "AdaDelta(0.5, rho=0.8, eps=1e-3)": "AdaDelta(0.5, 0.8, 1e-3)",
    "Adam(0.02)": "Adam(0.02)",
    "Adam(0.02, betas=[0.8, 0.95], eps=1e-4, bias_correction=True)":
        "Adam(0.02, {betas = {0.8, 0.95}, eps = 1e-4, bias_correction = true})",
    "Adam(optim.cosine_decay(0.05, 8), [0.0, 0.9], bias_correction=True)":
        "Adam(optim.cosine_decay(0.05, 8), {0, 0.9}, {bias_correction = true})",
    "AdamW(0.02)": "AdamW(0.02)",
    "AdamW(0.02, weight_decay=0.1, bias_correction=True)": "AdamW(0.02, {weight_decay = 0.1, bias_correction = true})",
    "Adamax(0.02)": "Adamax(0.02)",
    "Lion(0.01, weight_decay=0.1)": "Lion(0.01, {weight_decay = 0.1})",
    "Adafactor()": "Adafactor()",
    "Adafactor(0.01, relative_step=False, scale_parameter=False, beta_1=0.9, weight_decay=0.1)":
        "Adafactor(0.01, {relative_step = false, scale_parameter = false, beta_1 = 0.9, weight_decay = 0.1})",
    "Adafactor(warmup_init=True, decay_rate=-1.0, clip_threshold=0.5)":
        "Adafactor{warmup_init = true, decay_rate = -1, clip_threshold = 0.5}",
    "Muon(0.02)": "Muon(0.02)",
    "Muon(0.02, momentum=0.8, weight_decay=0.0, nesterov=False, ns_steps=3)":
        "Muon(0.02, {momentum = 0.8, weight_decay = 0, nesterov = false, ns_steps = 3})",
    "MultiOptimizer([optim.Muon(0.02), optim.SGD(0.1, momentum=0.9)], [lambda path, x: x.ndim > 1])":
        "MultiOptimizer({optim.Muon(0.02), optim.SGD(0.1, {momentum = 0.9})}, {function(_, x) return x.ndim > 1 end})",
}
LEAVES = {"layers.0.b": ((5,), mx.bfloat16), "layers.1.k": ((2, 3, 2), mx.float32), "w": ((3, 4), mx.float32)}


def leaf(name, number):
    shape, dtype = LEAVES[name]
    size = 1
    for n in shape:
        size *= n
    return mx.array([number(i) for i in range(size)]).reshape(shape).astype(dtype)


def tree(number):
    return tree_unflatten([(name, leaf(name, lambda i, j=j: number(i, j))) for j, name in enumerate(LEAVES)])


def numbers(xs):
    return [float(f"{x:.9g}") for x in xs]


def flat(t):
    return {name: numbers(x.astype(mx.float32).reshape(-1).tolist()) for name, x in tree_flatten(t)}


answers = {"schedules": [], "optimizers": []}
for python, lua in SCHEDULES.items():
    f = eval("optim." + python)
    answers["schedules"].append({"lua": lua, "values": numbers(f(mx.array(t, mx.uint64)).item() for t in range(20))})
for python, lua in OPTIMIZERS.items():
    o = eval("optim." + python)
    p = tree(lambda i, j: ((i * 5 + j * 3) % 11 - 5) / 8)
    steps = []
    for t in range(10):
        p = o.apply_gradients(tree(lambda i, j: ((i * 7 + t * 13 + j * 5) % 17 - 8) / 16), p)
        if t in (0, 9):
            steps.append({"parameters": flat(p), "state": flat(o.state)})
    answers["optimizers"].append({"lua": lua, "first": steps[0], "tenth": steps[1]})

grads = tree(lambda i, j: ((i * 7 + j * 5) % 17 - 8) / 4)
answers["clipped"] = []
for most in (1.0, 1000.0, 0.0):
    clipped, norm = optim.clip_grad_norm(grads, most)
    answers["clipped"].append({"most": most, "norm": norm.item(), "grads": flat(clipped)})

pathlib.Path("testdata/optimizers.json").write_text(json.dumps(answers, separators=(",", ":")).replace('{"lua"', '\n{"lua"') + "\n")
