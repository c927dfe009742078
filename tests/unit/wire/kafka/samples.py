"""Random messages of any class and version, made from the schema that the codecs are compiled from."""

from collections.abc import Callable
from functools import cache
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from goqueue.wire.kafka.codec import FORMATS
from goqueue.wire.kafka.notation import Message
from goqueue.wire.kafka.schema import Field, fields_of

ALL_CLASSES = list(FORMATS)
ALL_VERSIONS = [
    (message, version)
    for message, (versions, _) in FORMATS.items()
    for version in range(versions.first, versions.last + 1)
]

TIMES_MS = st.integers(0, 10**13)
"""What kio can hold as a time, apart from -1 where that is the default."""
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "int8": st.integers(-(2**7), 2**7 - 1),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float64": st.floats(allow_nan=False),
    "bool": st.booleans(),
    "uuid": st.just(bytes(16)) | st.binary(min_size=16, max_size=16),
    "string": st.text(st.characters(codec="utf-8"), max_size=3) | st.sampled_from(["topic-Ä", "x" * 126, "ß" * 100]),
    "bytes": st.binary(max_size=3) | st.just(b"." * 127),
    "records": st.sampled_from([memoryview(b"." * length) for length in (0, 1, 126, 20_000)]),
}
OUR_TAGS = 10_000
LONG_ARRAY = list(range(130))


def thorough(examples: int) -> Callable[[Any], Any]:
    """A whole suite has to fit into seconds, and hundreds of codecs share this many examples each."""
    return settings(max_examples=examples)


@cache
def messages(message: type[Message], version: int) -> st.SearchStrategy[Any]:
    present = [field for field in fields_of(message) if version in field.versions and not is_ours(field)]
    return st.builds(message, **{field.name: _values(field, version) for field in present})


def is_ours(field: Field) -> bool:
    """A tag that the protocol does not have, so that no oracle knows it; test_codec.py has a message for it."""
    return field.tag is not None and field.tag >= OUR_TAGS


def _values(field: Field, version: int) -> st.SearchStrategy[Any]:
    values = _elements(field, version)
    if field.is_array:
        lists = st.lists(values, max_size=2)
        values = lists | st.just(LONG_ARRAY) if field.kind in {"int32", "int64"} else lists
    elif field.message is not None and field.tag is not None:
        empty = field.message()
        return st.none() | values.filter(lambda value: value != empty)
    return st.none() | values if version in field.null_versions else values


def _elements(field: Field, version: int) -> st.SearchStrategy[Any]:
    if field.message is not None:
        return messages(field.message, version)
    if field.name.endswith("error_code"):
        return st.sampled_from([int(code) for code in ErrorCode])
    if field.kind == "int64" and field.name.endswith(("_ms", "duration_filter", "last_timestamp")):
        return TIMES_MS | st.just(field.default)
    return KINDS[field.kind]
