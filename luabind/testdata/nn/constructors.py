"""The constructors of mlx.nn and mlx.optimizers, from the real ones: python constructors.py, in luabind/testdata/nn,
writes constructors.txt. A line is a class with its parameters; a default that is no number, text or flag is *."""

import inspect

import mlx.nn as nn
import mlx.optimizers as optimizers

SIMPLE = {None: "nil", True: "true", False: "false"}


def default(v):
    if isinstance(v, bool) or v is None:
        return SIMPLE[v]
    return repr(float(v)) if isinstance(v, (int, float)) else v if isinstance(v, str) else "*"


with open("constructors.txt", "w") as out:
    out.write("# Written by constructors.py from mlx 0.32.4.\n")
    for module, base in ((nn, nn.Module), (optimizers, optimizers.Optimizer)):
        for name, c in sorted(vars(module).items()):
            if not (inspect.isclass(c) and issubclass(c, base) and c is not base):
                continue
            words = []
            for p in list(inspect.signature(c.__init__).parameters.values())[1:]:
                if p.kind == p.VAR_POSITIONAL:
                    words.append(p.name + "...")
                elif p.kind != p.VAR_KEYWORD:
                    words.append(p.name if p.default is p.empty else f"{p.name}={default(p.default)}")
            out.write(" ".join([f"{module.__name__.split('.')[1]}.{name}", *words]) + "\n")
