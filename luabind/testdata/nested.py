"""Random nested transforms, and what MLX gives for them: python3 nested.py COUNT SEED > nested.txt, in luabind/testdata.

The lines are those of calls.py. A transform of a map, of arrays to arrays of the same shape, is such a map again: it is
compiled, checkpointed, batched, differentiated forwards or backwards, or made a custom function with rules of its own. MLX
runs them all but those of compile, which change no result. Axes of batches are numbers and trees.
"""

import os
import random
import sys

import mlx.core as mx

import calls

mx.disable_compile()

BASES = [
    ("function(x) return mx.sin(x) * x end", lambda x: mx.sin(x) * x),
    ("function(x) return mx.tanh(x * 0.5 + 1) end", lambda x: mx.tanh(x * 0.5 + 1)),
    ("function(x) return mx.softmax(x, -1) end", lambda x: mx.softmax(x, -1)),
    ("function(x) return mx.cumsum(x * x, 0) * 0.25 end", lambda x: mx.cumsum(x * x, 0) * 0.25),
    ("function(x) return mx.exp(-x * x) + mx.mean(x) end", lambda x: mx.exp(-x * x) + mx.mean(x)),
    ("function(x) return x * weights[1] + mx.cos(x) end", lambda x: x * 1.5 + mx.cos(x)),
    ("function(x) return mx.sort(x, -1) * x end", lambda x: mx.sort(x, -1) * x),
    ("function(x) return mx.where(mx.greater(x, 0.25), x * x, mx.exp(x)) end", lambda x: mx.where(x > 0.25, x * x, mx.exp(x))),
]


def custom(f, rules):
    g = mx.custom_function(f)
    for name, rule in rules.items():
        getattr(g, name)(rule)
    return g


def wrap(r, text, f, dims):
    """A transform of the map f of arrays of so many dimensions."""
    kind = r.choice(["compile", "shapeless", "checkpoint", "vmap", "vmap", "tree", "grad", "jvp", "vjp", "value", "own vjp", "own vmap"])
    if kind == "compile":
        return f"mx.compile({text})", f, dims
    if kind == "shapeless":
        return f"mx.compile({text}, {{shapeless = true}})", f, dims
    if kind == "checkpoint":
        return f"mx.checkpoint({text})", mx.checkpoint(f), dims
    if kind in ("vmap", "tree") and dims < 3 and "k:vjp" not in text:  # MLX's batches drop such a rule
        a = r.randint(-dims - 1, dims)
        if kind == "vmap":
            return f"mx.vmap({text}, {a}, {a})", mx.vmap(f, in_axes=a, out_axes=a), dims + 1
        b = r.randint(0, dims)
        lua = (f"(function(x) local f = {text} local out = mx.vmap(function(t, s) return {{p = f(t.p) + s, q = t.q.u * 2}} end, "
               f"{{in_axes = {{{{p = {a}, q = {{u = {b}}}}}, false}}, out_axes = {{p = {a}, q = {a}}}}})({{p = x, q = {{u = x:moveaxis({a}, {b})}}}}, mx.array(0.5)) return out.p + out.q end)")

        def tree(x):
            g = mx.vmap(lambda t, s: {"p": f(t["p"]) + s, "q": t["q"]["u"] * 2}, in_axes=({"p": a, "q": {"u": b}}, None), out_axes={"p": a, "q": a})
            out = g({"p": x, "q": {"u": mx.moveaxis(x, a, b)}}, mx.array(0.5))
            return out["p"] + out["q"]

        return lua, tree, dims + 1
    if kind == "grad":
        return f"(function(x) local f = {text} return mx.grad(function(z) return mx.sum(f(z)) end)(x) end)", lambda x: mx.grad(lambda z: mx.sum(f(z)))(x), dims
    if kind == "value":
        return (f"(function(x) local f = {text} local v, g = mx.value_and_grad(function(z) return mx.mean(f(z) * z) end)(x) return g * 2 + v end)",
                lambda x: (lambda vg: vg[1] * 2 + vg[0])(mx.value_and_grad(lambda z: mx.mean(f(z) * z))(x)), dims)
    if kind == "jvp":
        return (f"(function(x) local f = {text} local y, d = mx.jvp(f, {{x}}, {{mx.cos(x)}}) return y[1] - d[1] end)",
                lambda x: (lambda yd: yd[0][0] - yd[1][0])(mx.jvp(f, [x], [mx.cos(x)])), dims)
    if kind == "vjp":
        return (f"(function(x) local f = {text} local y, g = mx.vjp(f, {{x}}, {{mx.cos(x)}}) return g[1] + y[1] end)",
                lambda x: (lambda yg: yg[1][0] + yg[0][0])(mx.vjp(f, [x], [mx.cos(x)])), dims)
    if kind == "own vjp":
        return (f"(function(x) local k = mx.custom_function({text}) k:vjp(function(x, cot, y) return cot * 3 + x end) return k(x) end)",
                lambda x: custom(f, {"vjp": lambda x, cot, y: cot * 3 + x})(x), dims)
    if kind == "own vmap":
        return (f"(function(x) local k = mx.custom_function({text}) k:vmap(function(x, axis) return x * 3, axis end) return k(x) end)",
                lambda x: custom(f, {"vmap": lambda x, axis: (x * 3, axis)})(x), dims)
    return wrap(r, text, f, dims)


def record(seed):
    r = random.Random(seed)
    text, f = r.choice(BASES)
    dims = 1
    for _ in range(r.randint(2, 4)):
        text, f, dims = wrap(r, text, f, dims)
    shape = [r.choice([1, 2, 3]) for _ in range(dims)]
    n = 1
    for s in shape:
        n *= s
    values = [r.randint(-6, 6) / 4 for _ in range(n)]
    x = mx.array(values).reshape(shape)
    lua = f"({text})(mx.array({{{', '.join(repr(v) for v in values)}}}):reshape({{{', '.join(map(str, shape))}}}))"
    try:
        y = f(x)
        mx.eval(y)
    except (ValueError, RuntimeError) as e:
        if os.environ.get("MESSAGES"):
            sys.stderr.write(f"{lua}\n{e}\n")
        return None
    return f"{lua}\t4096\t{calls.output(y)}"


if __name__ == "__main__":
    print(f"# MLX {mx.__version__}, CPU: python3 nested.py {' '.join(sys.argv[1:])} > nested.txt, in luabind/testdata")
    for i in range(int(sys.argv[1])):
        line = record(f"{sys.argv[2]} {i}")
        if line:
            print(line, flush=True)
