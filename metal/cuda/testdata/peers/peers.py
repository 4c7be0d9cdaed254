"""Beside torch on one card: peers.py MLXLUA [row ...] runs rows.lua by that program and rows.py in turns, twice, and
prints a table: microseconds of a call, the better of the two runs, and torch's time over ours."""
import os
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))


def rows(command):
    found = {}
    out = subprocess.run(command + sys.argv[2:], capture_output=True, text=True, check=True).stdout
    for line in out.splitlines():
        name, _, rest = line.partition(" ")
        value = rest.split()[0].rstrip(",") if rest.split() else "-"
        if value != "-":
            found[name] = float(value)
        else:
            print(line, file=sys.stderr)
    return found


sides = [[sys.argv[1], "--device", "cuda", os.path.join(here, "rows.lua")],
         [sys.executable, os.path.join(here, "rows.py")]]
best = [{}, {}]
for _ in range(2):
    for mine, command in zip(best, sides):
        for name, us in rows(command).items():
            mine[name] = min(us, mine.get(name, us))
print(f"{'row':32s} {'mlxlua':>10s} {'torch':>10s} torch / mlxlua")
for name, us in best[0].items():
    other = best[1].get(name)
    print(f"{name:32s} {us:10.1f} " + (f"{other:10.1f} {other / us:.2f}" if other else f"{'-':>10s}"))
