"""Random programs of views of 0, 1, 2, ... and what NumPy makes of them; some end in an assignment: python views.py, here."""

import json

import numpy as np


def index(parts):
    """Parts are ["at", i], ["span", start, stop, step], ["new"] or ["dots"]."""
    one = {"at": lambda p: p[1], "span": lambda p: slice(*p[1:]), "new": lambda p: None, "dots": lambda p: Ellipsis}
    return tuple(one[p[0]](p) for p in parts)


def random_parts(rng, shape):
    parts = []
    for n in shape[:rng.integers(0, len(shape) + 1)]:
        if rng.random() < 0.1:
            parts.append(["new"])
        if n and rng.random() < 0.25:
            parts.append(["at", int(rng.integers(-n, n))])
            continue
        end = lambda: None if rng.random() < 0.4 else int(rng.integers(-n - 2, n + 3))  # noqa: E731
        parts.append(["span", end(), end(), int(rng.choice([-3, -2, -1, -1, 1, 1, 2, 5]))])
    if len(parts) < len(shape) and rng.random() < 0.3:
        parts.insert(0, ["dots"])
    return parts


def views():
    rng = np.random.default_rng(7)
    cases = []
    for k in range(150):
        shape = [int(n) for n in rng.choice([1, 2, 3, 4, 5], size=rng.integers(1, 4))]
        x = np.arange(np.prod(shape)).reshape(shape)
        steps = []
        for _ in range(rng.integers(1, 6)):
            op = str(rng.choice(["transpose", "slice", "reshape", "expand_dims", "broadcast_to", "flatten", "squeeze"]))
            if op == "transpose":
                arg = [int(i) for i in rng.permutation(x.ndim)]
                x = x.transpose(arg)
            elif op == "slice":
                arg = random_parts(rng, x.shape)
                x = x[index(arg)]
            elif op == "reshape":
                divisors = [d for d in range(1, x.size + 1) if x.size % d == 0]
                arg = [int(rng.choice(divisors)), -1] if divisors else [0, 3]
                x = x.reshape(arg)
            elif op == "expand_dims":
                arg = [int(rng.integers(-x.ndim - 1, x.ndim + 1))]
                x = np.expand_dims(x, tuple(arg))
            elif op == "broadcast_to":
                if x.size > 100:
                    continue
                arg = [2] + [3 if n == 1 else n for n in x.shape]
                x = np.broadcast_to(x, arg)
            elif op == "flatten":
                arg = [0, -1]
                x = x.reshape(-1)
            else:
                arg = [i for i, n in enumerate(x.shape) if n == 1]
                x = np.squeeze(x, tuple(arg))
            steps.append([op, arg])
        if k % 3 == 0:
            arg = random_parts(rng, x.shape)
            part = x[index(arg)]
            if rng.random() < 0.5 and part.ndim:
                part = part[:1]
            update = -1 - np.arange(part.size).reshape(part.shape)
            x = x.copy()
            try:
                x[index(arg)] = update
                steps.append(["slice_update", arg, list(update.shape)])
            except ValueError:  # an update of one row does not broadcast to none
                pass
        cases.append({"shape": shape, "steps": steps, "out_shape": list(x.shape), "out": x.reshape(-1).tolist()})
    return cases


with open("views.json", "w") as f:
    f.write(f'{{"header": "made by `python views.py` with NumPy {np.__version__}",\n"cases": [\n')
    f.write(",\n".join(json.dumps(c, separators=(",", ":")) for c in views()))
    f.write("\n]}\n")
