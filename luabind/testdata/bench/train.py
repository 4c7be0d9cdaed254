# Training steps of mlxlua, MLX and torch, each side in a process of its own, in turns:
#   python luabind/testdata/bench/train.py MLXLUA [rounds] [mlp|gpt ...]
# MLXLUA is the program. It prints for each side the least time and the least processor time of a step over the rounds, in
# ms, and the highest peak of arrays in MiB; torch does not count its own. Models, sizes and optimizer are those of train.lua beside this file. torch.compile
# needs a C++ compiler. A side that takes longer than 120 s for its first steps is left out.
import os, select, subprocess, sys, time

SIDES = ["mlxlua eager", "mlxlua compiled", "mlx eager", "mlx compiled", "torch eager", "torch compiled"]


def mlx_step(kind, mode):
    import mlx.core as mx, mlx.nn as nn, mlx.optimizers as optim

    class MLP(nn.Module):
        def __init__(self):
            super().__init__()
            self.l1, self.l2, self.l3 = nn.Linear(784, 256), nn.Linear(256, 256), nn.Linear(256, 10)

        def __call__(self, x):
            return self.l3(nn.relu(self.l2(nn.relu(self.l1(x)))))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.places = nn.Embedding(256, 128), nn.Embedding(64, 128)
            self.blocks = [nn.TransformerEncoderLayer(128, 4), nn.TransformerEncoderLayer(128, 4)]
            self.ln, self.out = nn.LayerNorm(128), nn.Linear(128, 256)

        def __call__(self, x):
            h = self.embed(x) + self.places(mx.arange(64))
            for block in self.blocks:
                h = block(h, "causal")
            return self.out(self.ln(h))

    mx.random.seed(0)
    if kind == "mlp":
        model, x, y = MLP(), mx.random.normal([256, 784]), mx.random.randint(0, 10, [256])
    else:
        model, x, y = GPT(), mx.random.randint(0, 256, [16, 64]), mx.random.randint(0, 256, [16, 64])
    opt = optim.Adam(1e-3)
    gradients = nn.value_and_grad(model, lambda m, a, b: nn.losses.cross_entropy(m(a), b, reduction="mean"))

    def step(a, b):
        loss, g = gradients(model, a, b)
        opt.update(model, g)
        return loss

    state = [model.state, opt.state]
    f = mx.compile(step, inputs=state, outputs=state) if mode == "compiled" else step
    mx.eval(model.parameters(), x, y)

    def run():
        loss = f(x, y)
        mx.eval(loss, model.parameters(), opt.state)

    return run, mx.reset_peak_memory, lambda: mx.get_peak_memory() / 2**20


def torch_step(kind, mode):
    import torch, torch.nn as nn, torch.nn.functional as F

    class Layer(nn.Module):
        def __init__(self, dims, heads):
            super().__init__()
            self.heads = heads
            self.q, self.k, self.v, self.o = (nn.Linear(dims, dims, bias=False) for _ in range(4))
            self.ln1, self.ln2 = nn.LayerNorm(dims), nn.LayerNorm(dims)
            self.linear1, self.linear2 = nn.Linear(dims, 4 * dims), nn.Linear(4 * dims, dims)

        def forward(self, x):
            y = self.ln1(x)
            q, k, v = (p(y).unflatten(-1, (self.heads, -1)).transpose(1, 2) for p in (self.q, self.k, self.v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.o(y.transpose(1, 2).flatten(-2))
            return x + self.linear2(F.relu(self.linear1(self.ln2(x))))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.places = nn.Embedding(256, 128), nn.Embedding(64, 128)
            self.blocks = nn.Sequential(Layer(128, 4), Layer(128, 4))
            self.ln, self.out = nn.LayerNorm(128), nn.Linear(128, 256)

        def forward(self, x):
            return self.out(self.ln(self.blocks(self.embed(x) + self.places(torch.arange(64)))))

    torch.manual_seed(0)
    if kind == "mlp":
        model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
        x, y = torch.randn(256, 784), torch.randint(0, 10, (256,))
    else:
        model, x, y = GPT(), torch.randint(0, 256, (16, 64)), torch.randint(0, 256, (16, 64))
    opt = torch.optim.Adam(model.parameters(), 1e-3)
    forward = torch.compile(model) if mode == "compiled" else model

    def run():
        opt.zero_grad(set_to_none=True)
        F.cross_entropy(forward(x).flatten(0, -2), y.flatten()).backward()
        opt.step()

    return run, lambda: None, lambda: float("nan")


def serve(side, kind):
    """Answers each number of steps on stdin with seconds and the peak in MiB."""
    library, mode = side.split()
    run, reset, peak = (mlx_step if library == "mlx" else torch_step)(kind, mode)
    for line in sys.stdin:
        reset()
        start = time.perf_counter()
        for _ in range(int(line)):
            run()
        print(time.perf_counter() - start, peak(), flush=True)


class Side:
    def __init__(self, side, kind, mlxlua):
        library, mode = side.split()
        here = os.path.dirname(os.path.abspath(__file__))
        if library == "mlxlua":
            command = [mlxlua, os.path.join(here, "train_serve.lua"), kind, mode]
        else:
            command = [sys.executable, os.path.abspath(__file__), "serve", side, kind]
        self.name, self.best = side, [float("inf"), float("inf"), 0]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def processors(self):
        """The processor time of the process's threads so far, in seconds; Linux only."""
        tasks = f"/proc/{self.process.pid}/task"
        return sum(int(open(f"{tasks}/{task}/schedstat").read().split()[0]) for task in os.listdir(tasks)) / 1e9

    def ask(self, steps, limit):
        """Runs steps: milliseconds and milliseconds of processor time a step, and the peak. None if they take too long, or
        the process has ended."""
        before = self.processors()
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        if not select.select([self.process.stdout], [], [], limit)[0]:
            return None
        got = [float(v) for v in self.process.stdout.readline().split()]
        if len(got) < 2:
            return None
        return [got[0] / steps * 1e3, (self.processors() - before) / steps * 1e3, got[1]]

    def end(self):
        self.process.kill()
        self.process.wait()


def main(mlxlua, rounds, kinds):
    for kind in kinds:
        sides = []
        for name in SIDES:
            side = Side(name, kind, mlxlua)
            if side.ask(3, 120):
                sides.append(side)
            else:
                print(f"{kind}  {name}: no steps in 120 s")
                side.end()
        for _ in range(rounds):
            for side in sides:
                took = side.ask(1 if side.name.startswith("mlx ") else 5, 600)
                best = side.best
                side.best = [min(best[0], took[0]), min(best[1], took[1]), max(best[2], took[2])]
        for side in sides:
            print(f"{kind}  {side.name:16s} {side.best[0]:8.2f} ms  processors {side.best[1]:8.2f} ms  "
                  f"peak {side.best[2]:6.2f} MiB", flush=True)
            side.end()


if sys.argv[1] == "serve":
    serve(sys.argv[2], sys.argv[3])
else:
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20, sys.argv[3:] or ["mlp", "gpt"])
