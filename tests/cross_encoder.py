"""A cross-encoder of a kilobyte, for fastembed to load: it counts what a query and a text have in common.

Its logit is ``WEIGHT`` per pair of equal meanings in query and text, minus ``BIAS``; "reboot" means what "restart"
does, and words outside of ``MEANINGS`` mean nothing. The graph is written as protobuf by hand: the onnx package is no
dependency. Field numbers are those of onnx.proto.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

MEANINGS = (("restart", "reboot"), ("server", "machine"), ("deploy", "release"), ("cat",), ("window",), ("port",))
WEIGHT, BIAS = 2.0, 3.0
READS = 24
"""Word pieces of a pair that the model reads, special ones included."""

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
_FLOAT, _INT64 = 1, 7
_INPUTS = ("input_ids", "token_type_ids", "attention_mask")


def write(folder: Path, *, graph: str = "model.onnx", weight: float = WEIGHT, numbers: int = 1) -> Path:
    """The model's folder. ``numbers``: how many it answers to a pair, 1 for a reranker."""
    (folder / graph).parent.mkdir(parents=True)
    (folder / graph).write_bytes(_model(weight, numbers))
    _tokenizer().save(str(folder / "tokenizer.json"))
    settings = {"model_max_length": READS, "pad_token": "[PAD]"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    (folder / "config.json").write_text(json.dumps({"pad_token_id": 0}), encoding="utf-8")
    return folder


def _tokenizer() -> Tokenizer:
    words = [word for meaning in MEANINGS for word in meaning]
    vocabulary = {word: at for at, word in enumerate((*_SPECIAL, *words))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    specials = [(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=specials
    )
    return tokenizer


# --- the graph --------------------------------------------------------------------------------------------


def _model(weight: float, numbers: int) -> bytes:
    nodes = (
        _node("Gather", ["meanings", "input_ids"], "each"),  # batch x words x meanings
        _node("Cast", ["token_type_ids"], "second", to=_FLOAT),
        _node("Unsqueeze", ["second"], "of_text", axes=[2]),
        _node("Mul", ["each", "of_text"], "each_of_text"),
        _node("ReduceSum", ["each_of_text"], "text", axes=[1], keepdims=0),
        _node("ReduceSum", ["each"], "all", axes=[1], keepdims=0),
        _node("Sub", ["all", "text"], "query"),
        _node("Mul", ["query", "text"], "shared"),
        _node("ReduceSum", ["shared"], "count", axes=[1], keepdims=1),
        _node("Mul", ["count", "weight"], "weighted"),  # weight and bias have one entry per number that is answered
        _node("Sub", ["weighted", "bias"], "logits"),
    )
    rows = [[0.0] * len(MEANINGS) for _ in _SPECIAL]
    for at, meaning in enumerate(MEANINGS):
        rows += [[float(at == column) for column in range(len(MEANINGS))] for _ in meaning]
    tensors = (
        _tensor("meanings", [len(rows), len(MEANINGS)], [value for row in rows for value in row]),
        _tensor("weight", [numbers], [weight] * numbers),
        _tensor("bias", [numbers], [BIAS] * numbers),
    )
    graph = [
        *(_message(1, node) for node in nodes),
        _text(2, "shared meanings"),
        *(_message(5, tensor) for tensor in tensors),
        *(_message(11, _value(name, _INT64, ["batch", "words"])) for name in _INPUTS),
        _message(12, _value("logits", _FLOAT, ["batch", numbers])),
    ]
    return _number(1, 7) + _message(7, b"".join(graph)) + _message(8, _text(1, "") + _number(2, 12))


def _node(kind: str, inputs: Sequence[str], output: str, **attributes: int | list[int]) -> bytes:
    parts = [*(_text(1, name) for name in inputs), _text(2, output), _text(4, kind)]
    for name, value in attributes.items():
        several = isinstance(value, list)
        content = b"".join(_number(8, each) for each in value) if isinstance(value, list) else _number(3, value)
        parts.append(_message(5, _text(1, name) + content + _number(20, 7 if several else 2)))
    return b"".join(parts)


def _tensor(name: str, shape: Sequence[int], values: Sequence[float]) -> bytes:
    raw = struct.pack(f"<{len(values)}f", *values)
    return b"".join(_number(1, size) for size in shape) + _number(2, _FLOAT) + _text(8, name) + _message(9, raw)


def _value(name: str, kind: int, shape: Iterable[str | int]) -> bytes:
    sizes = b"".join(_message(1, _number(1, size) if isinstance(size, int) else _text(2, size)) for size in shape)
    return _text(1, name) + _message(2, _message(1, _number(1, kind) + _message(2, sizes)))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _text(field: int, value: str) -> bytes:
    return _message(field, value.encode())


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
