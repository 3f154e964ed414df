"""The byte-level BPE of SmolLM2, from the tables in its GGUF file."""

import re

import regex

WORDS = regex.compile(
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
)
CONTROL = 3  # token type in the GGUF table


def byte_alphabet():
    """GPT-2's map from bytes to printable characters."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    other = [b for b in range(256) if b not in printable]
    return {b: chr(b) for b in printable} | {b: chr(256 + i) for i, b in enumerate(other)}


class Tokenizer:
    def __init__(self, tokens, types, merges):
        self.tokens = tokens
        self.ids = {token: i for i, token in enumerate(tokens)}
        self.rank = {tuple(merge.split(" ")): i for i, merge in enumerate(merges)}
        self.to_char = byte_alphabet()
        self.to_byte = {char: byte for byte, char in self.to_char.items()}
        control = [token for token, kind in zip(tokens, types) if kind == CONTROL]
        self.control = re.compile("(" + "|".join(map(re.escape, control)) + ")")

    @classmethod
    def from_gguf(cls, reader):
        tables = ("tokens", "token_type", "merges")
        return cls(*(reader.fields[f"tokenizer.ggml.{name}"].contents() for name in tables))

    def encode(self, text):
        ids = []
        for i, part in enumerate(self.control.split(text)):
            if i % 2:  # odd parts are the control tokens themselves
                ids.append(self.ids[part])
                continue
            for digit_or_rest in regex.split(r"(\p{N})", part):  # each digit stands alone
                for word in WORDS.findall(digit_or_rest):
                    ids += self.encode_word(word)
        return ids

    def encode_word(self, word):
        parts = [self.to_char[byte] for byte in word.encode()]
        while len(parts) > 1:
            ranks = [self.rank.get(pair, len(self.rank)) for pair in zip(parts, parts[1:])]
            best = min(ranks)
            if best == len(self.rank):
                break
            at = ranks.index(best)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        return [self.ids[part] for part in parts]

    def decode(self, ids):
        text = "".join(self.tokens[i] for i in ids)
        return bytes(self.to_byte[char] for char in text).decode(errors="replace")
