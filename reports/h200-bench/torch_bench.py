#!/usr/bin/env python3
"""PyTorch's own kernels at the shapes of an `assay bench --json`, by the same method.

    assay bench -d cuda:0 --json > bench.json
    python3 torch_bench.py bench.json [flash|cudnn|efficient] > torch.json
    assay bench -d cuda:0 --beside torch.json

The second argument forces one of the backends of scaled_dot_product_attention; without it PyTorch picks.
Device events around each of 51 calls (fewer beyond 0.3 s), all queued before the first one is
waited for, after 3 calls to warm up; median; random normal inputs; buffers taken in turn so that
what is touched is at least four times the L2 cache.
"""
import json
import re
import sys

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

WARM_UP, SAMPLES, LEAST, LIMIT = 3, 51, 5, 0.3
DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION,
            "efficient": SDPBackend.EFFICIENT_ATTENTION}


def rope(x, cos, sin):
    """What models write: x cos + rotate_half(x) sin, with cos and sin of all tokens ready."""
    half = x.shape[-1] // 2
    turned = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
    return x * cos + turned * sin


def attention_of(variant, shape, dtype, backend):
    """The fused attention that PyTorch picks, or the backend named; lse is not asked for."""
    batch, heads, kv_heads, _, keys, dim = shape
    if variant == "other":
        return None
    k, v = (torch.randn(batch, kv_heads, keys, dim, device="cuda").to(dtype) for _ in range(2))

    def call(q):
        return F.scaled_dot_product_attention(
            q, k, v, is_causal=variant == "causal", enable_gqa=heads != kv_heads)

    def forced(q):
        with sdpa_kernel(BACKENDS[backend]):
            return call(q)

    return forced if backend else call


def op_of(name, shape, dtype):
    """A function of x, or None for an op that is not in the list."""
    cols = shape[-1]

    def like(*shape):
        return torch.randn(*shape, device="cuda").to(dtype)

    if name == "rope":
        cos, sin = like(shape[0], 1, cols), like(shape[0], 1, cols)
        return lambda x: rope(x, cos, sin)
    if name in ("layernorm", "rmsnorm"):
        weight, bias = like(cols), like(cols)
        if name == "layernorm":
            return lambda x: F.layer_norm(x, (cols,), weight, bias, 1e-5)
        return lambda x: F.rms_norm(x, (cols,), weight, 1e-5)
    return {
        "sum": lambda x: x.sum(-1),
        "max": lambda x: x.amax(-1),
        "softmax": lambda x: torch.softmax(x, -1),
        "log_softmax": lambda x: torch.log_softmax(x, -1),
        "lse": lambda x: torch.logsumexp(x, -1),
    }.get(name)


def timed(call, inputs):
    """Seconds of one call, the median."""
    def run(count, first):
        events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
                  for _ in range(count)]
        for k, (begin, end) in enumerate(events):
            begin.record()
            call(inputs[(first + k) % len(inputs)])
            end.record()
        torch.cuda.synchronize()
        return sorted(begin.elapsed_time(end) * 1e-3 for begin, end in events)

    warm = run(WARM_UP, 0)[0]
    count = int(min(SAMPLES, max(LEAST, LIMIT / warm))) | 1
    return run(count, WARM_UP)[count // 2]


def measure(name, variant, dtype, shape, useful, backend):
    if name == "attention":
        call = attention_of(variant, shape, dtype, backend)
        shape = shape[:2] + (shape[3], shape[5])  # of q
    elif name == "softmax_topk":  # two kernels and more: PyTorch has no fused one
        k = shape[2]
        call = (lambda x: torch.softmax(x, -1, dtype=torch.float32).topk(k)) if variant == "" else None
        shape = shape[:2]
    else:
        call = op_of(name, shape, dtype) if variant == "" else None
    if call is None:
        return None
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    sets = min(WARM_UP + SAMPLES, 4 * cache // useful + 1)
    inputs = [torch.randn(*shape, device="cuda").to(dtype) for _ in range(sets)]
    with torch.no_grad():
        try:
            return timed(call, inputs)
        except RuntimeError as error:  # the backend does not take this dtype or shape
            if not backend or "No available kernel" not in str(error):
                raise
            print(f"{name} {variant} {dtype} {shape}: {error}", file=sys.stderr)
            return None


def extents(shape):
    """(4, 33) of "4x33"; (8, 2, 64) of "rows=8,heads=2,head_dim=64"."""
    return tuple(int(n) for n in re.findall(r"\d+", shape))


def copy_rate():
    """Bytes read and written per second by a copy of 256 MiB."""
    x = torch.randn(64 << 20, device="cuda")
    y = torch.empty_like(x)
    return 2 * x.nbytes / timed(y.copy_, [x])


def matmul_rate():
    """Operations per second of a product of two bf16 matrices of 8192 x 8192."""
    n = 8192
    a, b = (torch.randn(n, n, device="cuda").to(torch.bfloat16) for _ in range(2))
    return 2 * n**3 / timed(lambda x: x @ b, [a])


def main(path, backend=None):
    with open(path) as f:
        kernels = json.load(f)["kernels"]
    wanted = {}
    for kernel in kernels:
        for row in kernel["bench"]:
            if "bytes" in row:
                key = kernel["op"], row.get("variant", ""), kernel["dtype"], row["shape"]
                wanted[key] = row["bytes"]
    before, rows = copy_rate(), []
    for (name, variant, dtype, shape), useful in sorted(wanted.items()):
        seconds = measure(name, variant, DTYPES[dtype.split("->")[0]], extents(shape), useful,
                          backend)
        if seconds is not None:
            rows.append({"op": name, "variant": variant, "dtype": dtype, "shape": shape, "seconds": seconds,
                         "rate": useful / seconds})
    copy = max(before, copy_rate())
    json.dump({"torch": torch.__version__, "device": torch.cuda.get_device_name(), "sdpa": backend,
               "copy_rate": copy, "bf16_matmul_rate": matmul_rate(), "rows": rows}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or not set(sys.argv[2:]) <= set(BACKENDS):
        sys.exit(__doc__)
    main(*sys.argv[1:])
