"""What a value looks like, in a word or two: messages that fail for one reason often share it."""

import json
from typing import Any

NAMES_MAX = 12
DEPTH_MAX = 2
_KINDS = {str: "text", bool: "bool", int: "int", float: "float", type(None): "null"}


def shape_of(value: bytes | None) -> str:
    """`{id:int,name:text}` of JSON, otherwise `text` or `bytes` with the order of their size."""
    if value is None:
        return "none"
    if not value:
        return "empty"
    raw = bytes(value)
    if raw.lstrip()[:1] in (b"{", b"["):
        try:
            return _shape(json.loads(raw), 0)
        except (ValueError, RecursionError):
            return f"broken JSON {_size(len(raw))}"
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return f"bytes {_size(len(raw))}"
    return f"text {_size(len(raw))}" if text.isprintable() or text.split() else f"bytes {_size(len(raw))}"


def _shape(value: Any, depth: int) -> str:
    if isinstance(value, dict):
        if depth == DEPTH_MAX:
            return "{…}"
        names = sorted(value)
        parts = [f"{name}:{_shape(value[name], depth + 1)}" for name in names[:NAMES_MAX]]
        return "{" + ",".join(parts + (["…"] if len(names) > NAMES_MAX else [])) + "}"
    if isinstance(value, list):
        kinds = sorted({_shape(each, depth + 1) for each in value[:NAMES_MAX]}) if depth < DEPTH_MAX else ["…"]
        return "[" + "|".join(kinds) + "]"
    return _KINDS[type(value)]


def _size(size_bytes: int) -> str:
    """By powers of ten, so that neighbours meet."""
    power = len(str(max(1, size_bytes))) - 1
    return f"{10**power}-{10 ** (power + 1) - 1} B"
