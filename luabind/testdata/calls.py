"""Random calls, of arrays up to SIZE, and what MLX gives for them: python3 calls.py COUNT SEED SIZE > calls.txt, in luabind/testdata.

A line is a Lua expression, the error it may have in units of the dtype's precision, and MLX's result: "error", or each
output's dtype, shape and elements. Calls run in child processes, because some arguments end MLX's process; such calls
are left out, like those that MLX says it has not implemented, and lines longer than 100 times SIZE. callspecs.py has the
functions whose arguments need more than their names say, callnames.py all others of MLX's list.
"""

import math
import os
import random
import signal
import sys

import mlx.core as mx
import mlx.nn as nn
import numpy as np

import callnames
from callspecs import NAMES, SPECS
from calltext import ALL, LIMITS, Arr, Dtype, lua, python


LARGEST = int(sys.argv[3]) if len(sys.argv) > 3 else 0  # another script imports this one
SPECS += callnames.specs(NAMES)
mx.disable_compile()  # it would have a C++ compiler compile the functions of nn
# MLX's gradients of these fail, or lead through casts to bool where one element is reduced.
NO_GRAD = """full astype logcumsumexp all any where diag diagonal trace hadamard_transform addmm linalg.solve conv_general conv_transpose1d
conv_transpose2d conv_transpose3d fft.irfft fft.irfft2 fft.irfftn""".split()
# MLX's batches of these are wrong where the operands differ in rank, or give another result.
NO_VMAP = """equal not_equal greater greater_equal less less_equal logical_and logical_or linalg.tri_inv argmax argmin take expand_dims sum prod
bitwise_and bitwise_or bitwise_xor left_shift right_shift bitwise_left_shift bitwise_right_shift logical_xor divmod slice slice_update addmm
linalg.solve linalg.solve_triangular linalg.cholesky_inv put_along_axis""".split()


class Gen:
    """The random choices of a call."""

    def __init__(self, seed):
        self.r = random.Random(seed)

    def chance(self, p):
        return self.r.random() < p

    def pick(self, xs):
        return self.r.choice(xs)

    def int(self, lo, hi):
        return self.r.randint(lo, hi)

    def shape(self, least=0, most=4, empty=0.06):
        while True:
            s = [0 if self.chance(empty) else self.pick([1, 2, 2, 3, 3, 4, 5, 9]) for _ in range(self.int(least, most))]
            if math.prod(s) <= LARGEST:
                return s

    def dtype(self, kinds=None):
        return self.pick(kinds or ["float32"] * 8 + ["int32"] * 3 + ALL)

    def value(self, dtype, wild):
        if dtype == "bool":
            return self.chance(0.5)
        if dtype in LIMITS:
            lo, hi = LIMITS[dtype]
            if wild and self.chance(0.3):
                return self.pick([lo, hi, lo + 1, hi - 1, 0, 1])
            return self.int(max(lo, -9), 9)
        if dtype == "complex64":
            return complex(self.value("float32", False), self.value("float32", False))
        if wild and self.chance(0.4):
            return self.pick([math.inf, -math.inf, math.nan, 0.0, -0.0, 2.0**60, -(2.0**60), 2.0**-40, 1000.0])
        return self.int(-12, 12) / 4

    def array(self, shape=None, dtype=None, wild=None, values=None, layout=None):
        shape = self.shape() if shape is None else list(shape)
        dtype = dtype or self.dtype()
        wild = self.chance(0.2) if wild is None else wild
        layout = self.pick(["", "", "", "transpose", "step", "negative", "row"]) if layout is None else layout
        base = list(shape)
        if layout == "transpose" and len(shape) > 1:
            base.reverse()
        elif layout in ("step", "negative", "row") and shape and values is None:
            k = {"step": 2, "negative": 1, "row": 1}[layout]
            base[0] = base[0] * k + (layout == "row")
        else:
            layout = ""
        n = math.prod(base)
        v = [self.value(dtype, wild) for _ in range(n)] if values is None else [values() for _ in range(n)]
        d = Dtype(dtype)
        raw = np.array(v, np.float32 if dtype == "bfloat16" else dtype).reshape(base)
        x = mx.array(raw, dtype=d.mx)
        text = "mx.array({" + ", ".join(lua(e) for e in v) + "}, " + d.text + ")"
        if base != [n]:
            text += f":reshape({lua(base)})"
        if layout == "transpose" and len(shape) > 1:
            return Arr(x.T, text + ".T")
        if layout == "step":
            return Arr(x[::2], text + '["::2"]')
        if layout == "negative":
            return Arr(x[::-1], text + '["::-1"]')
        if layout == "row":
            return Arr(x[1:], text + '["1:"]')
        return Arr(x, text)

    def operand(self, shape=None, dtype=None, wild=None):
        """An array, or now and then a number."""
        if self.chance(0.15):
            return self.pick([0, 1, 2, 3, 0.5, 300, 1e-3] + ([] if dtype and dtype.startswith("u") else [-1, -1.5]))
        return self.array(shape, dtype, wild)

    def like(self, shape):
        """A shape that broadcasts with another, mostly."""
        s = [1 if self.chance(0.25) else n for n in shape]
        s = s[self.int(0, len(s)) if self.chance(0.3) else 0 :]
        if s and self.chance(0.05):
            s[self.int(0, len(s) - 1)] += 1
        return s if self.chance(0.9) else [self.int(1, 3)] + s

    def axis(self, ndim):
        if self.chance(0.04):
            return self.pick([ndim, -ndim - 1, 7, -9])
        return self.int(-ndim, ndim - 1) if ndim else self.pick([0, -1])

    def axes(self, ndim):
        """None, an axis or several."""
        if self.chance(0.3):
            return None
        if self.chance(0.5):
            return self.axis(ndim)
        xs = self.r.sample(range(ndim), self.int(0, ndim))
        if xs and self.chance(0.05):
            xs.append(self.pick(xs))
        return [a - ndim if self.chance(0.3) else a for a in xs]


def resolve(name):
    f = nn if name.startswith("nn.") else mx
    for part in name.removeprefix("nn.").split("."):
        f = getattr(f, part)
    return f


def call_text(name, args, kwargs):
    if kwargs:
        args = args + ["{" + ", ".join(f"{k} = {v}" for k, v in kwargs.items()) + "}"]
    return f"{name}({', '.join(args)})"


def make(seed):
    """A call: its Lua text, its tolerance, and a function that gives MLX's results."""
    g = Gen(seed)
    spec = g.pick(SPECS)
    name, args, kwargs, tol = spec(g)
    if callable(name):  # a program of its own: the Lua text, and Python's function
        return args, tol, name
    kwargs = {k: v for k, v in kwargs.items() if v is not None and lua(v) != "nil"} | {k: v for k, v in kwargs.items() if k == "base"}
    texts, words = [lua(a) for a in args], {k: lua(v) for k, v in kwargs.items()}
    pargs, pkw = [python(a) for a in args], {k: python(v) for k, v in kwargs.items()}
    f, full = resolve(name), callnames.LUA.get(name, "mx." + name)
    where = [i for i, a in enumerate(args) if isinstance(a, Arr)]
    way = g.pick(["plain", "plain", "plain", "method", "compile", "shapeless", "grad", "jvp", "vmap"])
    if not where or name.startswith("random."):
        way = "plain"
    if way == "method" and where[0] == 0 and "." not in name and name not in ("real", "imag", "repeat", *callnames.LISTED):
        return call_text(texts[0] + ":" + name, texts[1:], words), tol, lambda: f(*pargs, **pkw)
    if way in ("compile", "shapeless"):
        params = [f"x{i}" if i in where else t for i, t in enumerate(texts)]
        names = ", ".join(f"x{i}" for i in where)
        opt = ", {shapeless = true}" if way == "shapeless" else ""
        text = f"mx.compile(function({names}) return {call_text(full, params, words)} end{opt})"
        return f"{text}({', '.join(texts[i] for i in where)})", tol, lambda: f(*pargs, **pkw)
    if way in ("grad", "jvp", "vmap"):
        at = g.pick(where)
        a, params = args[at], list(texts)
        params[at] = "x"
        body = call_text(full, params, words)

        def inner(x):
            return f(*[x if i == at else v for i, v in enumerate(pargs)], **pkw)

        if way == "vmap" and a.mx.size and len(a.mx.shape) and name not in NO_VMAP:
            axis = g.int(0, len(a.mx.shape) - 1)
            lead = f"mx.vmap(function(x) return {body} end, {{in_axes = {axis}}})({texts[at]})"
            return lead, tol, lambda: mx.vmap(inner, in_axes=axis)(pargs[at])
        if way != "vmap" and "logical" not in name and name not in NO_GRAD and a.mx.dtype == mx.float32 and all(mx.all(mx.isfinite(args[i].mx)).item() for i in where):
            first = lambda y: y[0] if isinstance(y, (list, tuple)) else y  # noqa: E731
            take = f"(mx.type(y) == 'array' and y or y[1])"
            if way == "grad":
                text = f"mx.grad(function(x) local y = {body} y = {take} return mx.sum(y * y) end)({texts[at]})"
                return text, max(tol, 1) * 64, lambda: mx.grad(lambda x: mx.sum(first(inner(x)) * first(inner(x))))(pargs[at])
            try:
                holds = first(inner(a.mx)).dtype != mx.bool_  # the tangent of a bool is float32 in MLX, by accident
            except (ValueError, TypeError, IndexError):
                holds = False
            if not holds:
                return call_text(full, texts, words), tol, lambda: f(*pargs, **pkw)
            text = f"mx.jvp(function(x) local y = {body} return {take} end, {{{texts[at]}}}, {{mx.full({lua(list(a.mx.shape))}, 2)}})"
            one = [pargs[at]], [mx.full(a.mx.shape, 2.0)]
            return text, max(tol, 1) * 64, lambda: mx.jvp(lambda x: first(inner(x)), *one)
    return call_text(full, texts, words), tol, lambda: f(*pargs, **pkw)


def flatten(y):
    if isinstance(y, (list, tuple)):
        return [a for v in y for a in flatten(v)]
    return [y]


def output(y):
    name = str(y.dtype).removeprefix("mlx.core.").rstrip("_")
    a = np.array(y.astype(mx.float32) if name in ("float16", "bfloat16") else y).reshape(-1)
    if name == "complex64":
        a = a.view(np.float32)
    values = " ".join(str(int(v)) if name in LIMITS else np.format_float_scientific(v, trim="-", exp_digits=1)
                      if np.isfinite(v) else str(v) for v in a)
    values = values.replace("e+0", "").replace("e-0", "")
    return f"{name} ({','.join(str(n) for n in y.shape)}) {values}".rstrip()


def record(seed):
    """The line of a call, or None where MLX has no say."""
    text, tol, run = make(seed)
    try:
        ys = flatten(run())
        if not all(isinstance(y, mx.array) for y in ys):
            return None
        mx.eval(ys)
        if not ys:
            return None
        result = "; ".join(output(y) for y in ys)
    except (ValueError, RuntimeError, TypeError, IndexError, OverflowError) as e:
        message = str(e).lower()
        if "implement" in message or "nyi" in message or "unable to infer primitive" in message:
            return None
        if os.environ.get("MESSAGES"):
            return f"{text}\t{tol}\terror\t" + " ".join(str(e).split())[:200]
        result = "error"
    return f"{text}\t{tol}\t{result}"


def main(count, seed):
    done = 0
    while done < count:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            with os.fdopen(write, "w") as out:
                for i in range(done, count):
                    signal.alarm(5)
                    out.write("begin\n")
                    out.flush()
                    line = record(f"{seed} {i}")
                    if line and len(line) < 100 * LARGEST:
                        out.write(line + "\n")
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as lines:
            for line in lines:
                if line == "begin\n":
                    done += 1
                elif line.endswith("\n"):
                    sys.stdout.write(line)
        os.waitpid(child, 0)


if __name__ == "__main__":
    if not os.environ.get("MESSAGES"):
        print(f"# MLX {mx.__version__}, CPU: python3 calls.py {' '.join(sys.argv[1:])} > calls.txt, in luabind/testdata")
    sys.stdout.flush()
    main(int(sys.argv[1]), sys.argv[2])
