"""SmolLM2-135M in numpy: the Llama architecture, float64 between the dequantised weights."""

import gguf
import numpy as np

from arithmetic import exp, matmul_t, rms_norm, rotations, row_sum, silu, softmax
from tokenizer import Tokenizer


class Model:
    def __init__(self, path):
        reader = gguf.GGUFReader(path)

        def meta(key):
            return reader.fields[key].contents()

        assert meta("general.architecture") == "llama"
        self.layers = meta("llama.block_count")
        self.heads = meta("llama.attention.head_count")
        self.kv_heads = meta("llama.attention.head_count_kv")
        self.head_dim = meta("llama.rope.dimension_count")
        self.rope_base = meta("llama.rope.freq_base")
        self.eps = meta("llama.attention.layer_norm_rms_epsilon")
        assert meta("llama.embedding_length") == self.heads * self.head_dim
        self.tokenizer = Tokenizer.from_gguf(reader)
        self.weights = {t.name: gguf.dequantize(t.data, t.tensor_type) for t in reader.tensors}
        for layer in range(self.layers):
            for name in ("attn_q", "attn_k"):
                self.unpermute(f"blk.{layer}.{name}.weight")

    def unpermute(self, name):
        """Back to the published order of rows, where feature i turns with feature i + head_dim/2.

        The conversion to GGUF interleaves them, so that 2i turns with 2i + 1.
        """
        w = self.weights[name]
        w = w.reshape(-1, self.head_dim // 2, 2, w.shape[1]).swapaxes(1, 2)
        self.weights[name] = w.reshape(-1, w.shape[-1])

    def weight(self, layer, name):
        return self.weights[f"blk.{layer}.{name}.weight"]

    def split_heads(self, rows):
        return np.split(rows, rows.shape[1] // self.head_dim, axis=1)

    def start(self, length):
        """An empty state for a sequence of at most `length` tokens."""
        shape = (self.layers, self.kv_heads, length, self.head_dim)
        return {
            "used": 0,
            "k": np.zeros(shape),
            "v": np.zeros(shape),
            "turn": rotations(length, self.head_dim // 2, self.rope_base),
        }

    def rope(self, x, cos, sin):
        low, high = np.split(x, 2, axis=1)
        return np.concatenate([low * cos - high * sin, high * cos + low * sin], axis=1)

    def forward(self, ids, state, keep=lambda *what: None):
        """The final hidden rows of `ids`, appended to `state`.

        keep(name, layer, head, rows) is shown what passes: "hidden" enters the attention norm,
        "qraw" and "kraw" are before rope, "q", "k", "v" are what attention gets, "logits" is
        scaled and causally masked.  k and v carry the number of their kv head.
        """
        first, last = state["used"], state["used"] + len(ids)
        cos, sin = (table[first:last] for table in state["turn"])
        future = np.arange(last) > np.arange(first, last)[:, None]
        x = self.weights["token_embd.weight"][ids].astype(np.float64)

        for layer in range(self.layers):
            keep("hidden", layer, 0, x)
            normed = rms_norm(x, self.weight(layer, "attn_norm"), self.eps)
            q = self.split_heads(matmul_t(normed, self.weight(layer, "attn_q")))
            k = self.split_heads(matmul_t(normed, self.weight(layer, "attn_k")))
            v = self.split_heads(matmul_t(normed, self.weight(layer, "attn_v")))

            for head in range(self.kv_heads):
                turned = self.rope(k[head], cos, sin)
                keep("kraw", layer, head, k[head])
                keep("k", layer, head, turned)
                keep("v", layer, head, v[head])
                state["k"][layer, head, first:last] = turned
                state["v"][layer, head, first:last] = v[head]

            mixed = []
            for head in range(self.heads):
                kv = head // (self.heads // self.kv_heads)
                turned = self.rope(q[head], cos, sin)
                keep("qraw", layer, head, q[head])
                keep("q", layer, head, turned)
                logits = matmul_t(turned, state["k"][layer, kv, :last]) / np.sqrt(self.head_dim)
                logits[future] = -np.inf
                keep("logits", layer, head, logits)
                mixed.append(matmul_t(softmax(logits), state["v"][layer, kv, :last].T))
            x = x + matmul_t(np.concatenate(mixed, axis=1), self.weight(layer, "attn_output"))

            normed = rms_norm(x, self.weight(layer, "ffn_norm"), self.eps)
            gate = matmul_t(normed, self.weight(layer, "ffn_gate"))
            up = matmul_t(normed, self.weight(layer, "ffn_up"))
            x = x + matmul_t(silu(gate) * up, self.weight(layer, "ffn_down"))

        state["used"] = last
        return rms_norm(x, self.weights["output_norm.weight"], self.eps)

    def vocabulary_logits(self, hidden):
        """The output layer is the embedding."""
        return matmul_t(hidden, self.weights["token_embd.weight"])

    def greedy(self, prompt, count):
        ids = self.tokenizer.encode(prompt)
        state = self.start(len(ids) + count)
        out, feed = [], ids
        while len(out) < count:
            logits = self.vocabulary_logits(self.forward(feed, state)[-1:])
            feed = [int(logits[0].argmax())]
            if self.tokenizer.control.fullmatch(self.tokenizer.tokens[feed[0]]):
                break
            out += feed
        return self.tokenizer.decode(out)


def losses(logits, ids):
    """-log p of each id under the row before it."""
    rows = logits - logits.max(axis=1, keepdims=True)
    return np.log(row_sum(exp(rows)))[:, 0] - rows[np.arange(len(ids)), ids]
