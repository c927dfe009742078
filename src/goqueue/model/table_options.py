"""How the table of a topic is divided, as its option `table.partition` says it: `day(_timestamp),bucket(16,_key)`."""

import re
from typing import NamedTuple

from goqueue.model.errors import InvalidOption

DEFAULT, NONE = "default", "none"
KEY = "_key"
PARTS_MAX = 8
CATALOG = re.compile(r"[A-Za-z0-9_-]{1,64}")
BUCKETS_MAX = 10_000
_PART = re.compile(
    r"(?:(?P<how>year|month|day|hour)\((?P<time>[A-Za-z_]\w*)\))"
    r"|(?:(?P<sized>bucket|truncate)\((?P<size>[0-9]{1,5}),(?P<of>[A-Za-z_]\w*)\))"
    r"|(?P<column>[A-Za-z_]\w*)",
    re.ASCII,
)
_EXAMPLE = "such as day(_timestamp),bucket(16,_key),region, or none, or default"


class Part(NamedTuple):
    """One field of a partition."""

    transform: str
    """As Iceberg writes it: identity, day, bucket[16]."""
    column: str


def parse_partition(name: str, text: str) -> tuple[Part, ...]:
    """Of what is neither `default` nor `none`. InvalidOption says what is wrong."""
    pieces = re.split(r",(?![^(]*\))", text.replace(" ", ""))
    parts = [_part(name, text, piece) for piece in pieces]
    if len(parts) > PARTS_MAX:
        raise InvalidOption(f"{name} has {len(parts)} parts, at most {PARTS_MAX} are allowed")
    columns = [part.column for part in parts]
    twice = [column for column in columns if columns.count(column) > 1]
    if twice:
        raise InvalidOption(f"{name} is {text!r}, which names {twice[0]} twice")
    return tuple(parts)


def _part(name: str, text: str, piece: str) -> Part:
    found = _PART.fullmatch(piece)
    if found is None:
        raise InvalidOption(f"{name} is {text[:80]!r}, but must be parts with commas between, {_EXAMPLE}")
    if found["sized"]:
        size = int(found["size"])
        if not 0 < size <= BUCKETS_MAX:
            raise InvalidOption(f"{name}: {found['sized']} has {size}, but must have 1 to {BUCKETS_MAX}")
        return Part(f"{found['sized']}[{size}]", found["of"])
    return Part(found["how"], found["time"]) if found["how"] else Part("identity", found["column"])


def check_partition(name: str, text: str) -> str:
    if text not in (DEFAULT, NONE):
        parse_partition(name, text)
    return text


def check_catalog(name: str, text: str) -> str:
    if text and not CATALOG.fullmatch(text):
        raise InvalidOption(f"{name} is {text[:80]!r}, but must be 1 to 64 letters, digits, _ and -")
    return text


def check_upsert(mode: str, partition: str) -> None:
    """The row that a record replaces has to be in the same partition: only its key says which that is."""
    if mode != "upsert" or partition in (DEFAULT, NONE):
        return
    others = [part.column for part in parse_partition("table.partition", partition) if part.column != KEY]
    if others:
        raise InvalidOption(f"table.partition is by {others[0]}, but with table.mode=upsert it must be by {KEY} alone")
