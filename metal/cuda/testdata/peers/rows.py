"""torch's side of peers.py. A line a row: microseconds of one call."""
import statistics
import sys

import torch
import torch.nn.functional as F

torch.set_grad_enabled(False)
torch.backends.cuda.matmul.allow_tf32 = False
dev = "cuda"
only = set(sys.argv[1:])
G = 1 << 28


def timed(n, f):
    """The median of nine rounds of n calls one behind the other, by the card's clock."""
    f(), f()
    t = []
    for _ in range(9):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        a.record()
        f()
        b.record()
        torch.cuda.synchronize()
        t.append(a.elapsed_time(b) * 1e3 / n)
    return statistics.median(t)


def row(name, make):
    if only and name not in only:
        return
    torch.cuda.empty_cache()
    try:
        print(f"{name:28s} {timed(*make()):.2f}", flush=True)
    except Exception as e:
        print(f"{name:28s} - {type(e).__name__}: {str(e).splitlines()[0][:120]}", flush=True)


def large(name, make):
    def calls():
        f = make()

        def four():
            for _ in range(4):
                f()
        return 4, four
    row(name, calls)


def small(name, n, make, x, call):
    """Forty calls in a CUDA graph, going over sets of operands that together are larger than the card's cache."""
    def calls():
        xs, ws = [x() for _ in range(40)], [make() for _ in range(n)]

        def step():
            return [call(xs[i], ws[i % n]) for i in range(40)]
        s = torch.cuda.Stream()
        with torch.cuda.stream(s):
            step(), step()
        torch.cuda.synchronize()
        g = torch.cuda.CUDAGraph()
        with torch.cuda.graph(g):
            out = step()

        def five():
            for _ in range(5):
                g.replay()
        return 200, five
    row(name, calls)


def f32(*s):
    return torch.randn(*s, device=dev)


def bf16(*s):
    return torch.randn(*s, device=dev, dtype=torch.bfloat16)


def binary(f, n=2):
    def make():
        xs = [f32(G) for _ in range(n)]
        return lambda: f(*xs)
    return make


def rows(f, dtype=torch.float32, shape=(65536, 4096)):
    def make():
        a = torch.randn(*shape, device=dev, dtype=dtype)
        w = torch.randn(shape[1], device=dev, dtype=dtype)
        return lambda: f(a, w)
    return make


large("copy_1g", binary(lambda a: a.clone(), 1))
large("add_1g", binary(lambda a, b: a + b))
gelu = torch.compile(lambda a, b, c: F.gelu(a * b + c))
large("gelu_1g", binary(lambda a, b, c: gelu(a, b, c), 3))
large("softmax_64kx4096", rows(lambda a, w: torch.softmax(a, -1)))
large("softmax_bf16_64kx4096", rows(lambda a, w: torch.softmax(a, -1), torch.bfloat16))
large("softmax_2kx128k", rows(lambda a, w: torch.softmax(a, -1), shape=(2048, 131072)))
large("layer_norm_64kx4096", rows(lambda a, w: F.layer_norm(a, (4096,), w, w)))
large("rms_norm_64kx4096", rows(lambda a, w: F.rms_norm(a, (4096,), w, 1e-5)))
large("rms_norm_bf16_64kx4096", rows(lambda a, w: F.rms_norm(a, (4096,), w, 1e-5), torch.bfloat16))
large("sum_rows_64kx4096", rows(lambda a, w: a.sum(1)))
large("sum_columns_64kx4096", rows(lambda a, w: a.sum(0)))
large("sum_all_1g", binary(lambda a: a.sum(), 1))
for n in (4096, 8192):
    def product(n=n):
        a, b = bf16(n, n), bf16(n, n)
        return lambda: a @ b
    large(f"product_bf16_{n}", product)
for dt in ("bfloat16", "float16", "float32"):
    t = getattr(torch, dt)
    for o, d in ((14336, 4096), (4096, 14336)):
        if o == 14336 or dt == "bfloat16":
            small(f"vector_{dt}_{o}x{d}", 4, lambda: torch.randn(o, d, device=dev, dtype=t),
                  lambda: torch.randn(1, d, device=dev, dtype=t), F.linear)
for o, d in ((14336, 4096), (4096, 14336), (2048, 2048)):
    def packed():
        w = torch.randint(0, 256, (o, d // 2), device=dev, dtype=torch.uint8)
        return (torch._convert_weight_to_int4pack(w, 8), bf16(d // 64, o, 2))
    small(f"quantized_4_{o}x{d}", 6 if o > 2048 else 40, packed, lambda: bf16(1, d),
          lambda x, w: torch._weight_int4pack_mm(x, w[0], 64, w[1]))
small("attention_1x4096", 4, lambda: (bf16(1, 8, 4096, 128), bf16(1, 8, 4096, 128)), lambda: bf16(1, 32, 1, 128),
      lambda q, kv: F.scaled_dot_product_attention(q, kv[0], kv[1], enable_gqa=True))
small("rms_norm_1x4096", 1, lambda: bf16(4096), lambda: bf16(1, 4096), lambda x, w: F.rms_norm(x, (4096,), w, 1e-5))
small("softmax_1x4096", 1, lambda: 0, lambda: f32(1, 4096), lambda x, w: torch.softmax(x, -1))


def experts():
    return torch.randn(128, 768, 2048, device=dev, dtype=torch.bfloat16)


small("experts_bf16_128x768x2048", 1, experts, lambda: (bf16(1, 2048), torch.randint(0, 128, (8,), device=dev)),
      lambda x, w: torch.matmul(w[x[1]], x[0].T))


def prefill():
    q, k, v = bf16(1, 32, 2048, 128), bf16(1, 8, 2048, 128), bf16(1, 8, 2048, 128)
    return lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


large("attention_2048x2048", prefill)
