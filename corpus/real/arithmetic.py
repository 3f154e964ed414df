"""Arithmetic that gives the same bits on every machine.

Only operations that IEEE 754 rounds correctly are used (+ - * / sqrt, and exact ones), one element
at a time and in a written order.  No BLAS, no libm, no fused multiply-add: whichever SIMD width or
thread count numpy picks, the result is the same.  Everything is float64.
"""

import numpy as np

TILE = 24 * 1024  # elements of one accumulator tile: three such float64 arrays stay in the L2 cache

LN2_HIGH = float.fromhex("0x1.62e42feep-1")  # short: n * LN2_HIGH is exact for every n used
LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")


def matmul_t(a, b):
    """a[m, k] @ b[n, k].T; every sum runs over k in ascending order."""
    m, n, depth = a.shape[0], b.shape[0], a.shape[1]
    out = np.empty((m, n))
    width = min(n, 1024)
    height = max(1, TILE // width)
    for col in range(0, n, width):
        right = np.ascontiguousarray(b[col : col + width].T, dtype=np.float64)
        for row in range(0, m, height):
            left = np.ascontiguousarray(a[row : row + height])
            acc = np.zeros((left.shape[0], right.shape[1]))
            term = np.empty_like(acc)
            for k in range(depth):
                np.multiply(left[:, k : k + 1], right[k], out=term)
                np.add(acc, term, out=acc)
            out[row : row + height, col : col + width] = acc
    return out


def row_sum(a):
    """The sum of each row: halves are added to halves until one column is left."""
    while a.shape[1] > 1:
        half = a.shape[1] // 2
        odd = a[:, 2 * half :]
        a = np.concatenate([a[:, :half] + a[:, half : 2 * half], odd], axis=1)
    return a


def exp(x):
    """e^x to about one ulp; arguments are held within [-700, 700], except that exp(-inf) = 0."""
    held = np.clip(x, -700.0, 700.0)
    n = np.rint(held * 1.4426950408889634)
    r = (held - n * LN2_HIGH) - n * LN2_LOW
    y = np.ones_like(r)
    for k in range(14, 0, -1):  # 1 + r/1 (1 + r/2 (1 + r/3 ...)), |r| <= 0.35
        y = 1.0 + r * y / k
    return np.where(np.isneginf(x), 0.0, np.ldexp(y, n.astype(np.int64)))


def softmax(x):
    e = exp(x - x.max(axis=1, keepdims=True))
    return e / row_sum(e)


def silu(x):
    return x / (1.0 + exp(-x))


def rms_norm(x, weight, eps):
    mean = row_sum(x * x) / x.shape[1]
    return x / np.sqrt(mean + eps) * weight


def rotations(count, pairs, base):
    """cos and sin [count, pairs] of position * base^(-i/pairs); pairs is a power of two."""
    root = np.float64(base)
    for _ in range(pairs.bit_length() - 1):
        root = np.sqrt(root)
    step = np.ones(pairs)
    for i in range(1, pairs):
        step[i] = step[i - 1] / root

    cos_step, sin_step = np.ones(pairs), np.ones(pairs)
    for k in range(20, 0, -2):  # Taylor; step is in (0, 1]
        cos_step = 1.0 - step * step * cos_step / (k * (k - 1))
        sin_step = 1.0 - step * step * sin_step / (k * (k + 1))
    sin_step = sin_step * step

    cos, sin = np.ones((count, pairs)), np.zeros((count, pairs))
    for t in range(1, count):
        cos[t] = cos[t - 1] * cos_step - sin[t - 1] * sin_step
        sin[t] = sin[t - 1] * cos_step + cos[t - 1] * sin_step
    return cos, sin
