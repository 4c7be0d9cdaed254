"""The names of MLX's core, with the parameters of its functions and methods as their docstrings give them:

    python testdata/names.py > mlx.txt        with mlx installed, in tensor/ops/sig

A line is name(parameter, parameter=default, *more), one for each way of calling, name = other for a second name of the
function before it, or name: what it is. The parameter stream of what has others
is left out.
"""

import types

import mlx.core as mx


def split(text):
    """The parts of a text between commas that stand in no brackets."""
    parts, depth, quoted, start = [], 0, False, 0
    for i, c in enumerate(text):
        if c == "'":
            quoted = not quoted
        elif not quoted:
            depth += (c in "([{") - (c in ")]}")
            if c == "," and depth == 0:
                parts.append(text[start:i])
                start = i + 1
    return [p.strip() for p in parts + [text[start:]] if p.strip()]


def outside(text, mark):
    """Where mark stands in no brackets, or the text's end."""
    depth = 0
    for i, c in enumerate(text):
        if c == mark and depth == 0:
            return i
        depth += (c in "([{") - (c in ")]}")
    return len(text)


def parameters(text):
    """The parameters of a docstring's signature, which text begins after its opening bracket."""
    end, out = outside(text, ")"), []
    for i, part in enumerate(split(text[:end])):
        equals = outside(part, "=")
        name, default = part[:equals], part[equals + 1 :].strip()
        name = name[: outside(name, ":")].strip()
        if name not in ("/", "*", "self") and (name != "stream" or i == 0):
            out.append(name + ("=" + default.replace(" ", "") if default else ""))
    return ", ".join(out)


def signatures(f):
    """The lines of a docstring before its first empty one, each with its name and parameters."""
    for line in (f.__doc__ or "").split("\n\n")[0].split("\n"):
        line = line.strip()
        if "(" in line:
            name, rest = line.split("(", 1)
            yield name, parameters(rest)


def first_name(prefix, own, f):
    """The full name of the function of that name in its module with f's docstring: f is a second name of it."""
    for module in (prefix, "linalg.", "fft."):
        scope = mx if module == "" else getattr(mx, module[:-1])
        if getattr(getattr(scope, own, None), "__doc__", None) == f.__doc__:
            return module + own
    raise LookupError(own)


def walk(prefix, scope):
    for name in dir(scope):
        value = getattr(scope, name)
        if name.startswith("_"):
            continue
        if isinstance(value, types.ModuleType):
            print(f"{prefix}{name}: module")
            walk(f"{prefix}{name}.", value)
        elif type(value).__name__ in ("nb_func", "nb_method"):
            for own, text in signatures(value):
                print(f"{prefix}{name}({text})")
            if own != name:
                print(f"{prefix}{name} = {first_name(prefix, own, value)}")
        else:
            print(f"{prefix}{name}: {type(value).__name__.removeprefix('nb_')}")


if __name__ == "__main__":
    print(f"# The names of MLX {mx.__version__}: python testdata/names.py > mlx.txt, in tensor/ops/sig.")
    walk("", mx)
    walk("array.", mx.array)
