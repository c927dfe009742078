"""What all formats give: a schema that was understood, which can be compared with others and checks values."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple, Protocol, Self

import msgspec

from goqueue.model.schemas import InvalidSchema

SCHEMA_BYTES_MAX = 512 * 1024
DEPTH_MAX = 64
"""How deep schemas and values may be nested: what walks them calls itself."""


TURN_BYTES_MAX = 16 * 1024
"""A larger value is checked in another thread: an array of a megabyte takes a tenth of a second."""


class Dependency(NamedTuple):
    """A schema that another refers to, by the name that it uses for it; those that it refers to itself come first."""

    name: str
    text: str


class Parsed(Protocol):
    @property
    def text(self) -> str:
        """As it is stored and given back."""

    @property
    def normalized(self) -> str:
        """The same for two texts that differ in nothing that matters."""

    @property
    def fingerprint(self) -> bytes:
        """Of `text`, whatever stands between its words."""

    @property
    def serialized(self) -> str:
        """For clients that ask for it in this way."""

    @property
    def turn_bytes_max(self) -> int:
        """A larger value is not checked in a moment."""

    def cannot_read(self, older: Self) -> list[str]:
        """Why it cannot read what was written with another schema; empty: it can read everything."""

    def fault(self, payload: bytes, is_framed: bool, allowance: "Allowance | None" = None) -> str | None:
        """Which field of a value is wrong and why. `is_framed`: it stood behind the id of its schema, and with it what
        else the format puts there. `allowance`: what this value and others may take together.
        """


Dependencies = Sequence[Dependency]


class TooComplex(InvalidSchema):
    """What a schema asks for would take more work than it is worth."""


class Allowance:
    """Steps for many values together. Hardly any takes more than its bytes; whose schema makes it take more uses this
    up.
    """

    def __init__(self, steps: int) -> None:
        self.left = steps


class Budget:
    """Steps that one question may take: a schema of 4 KB can ask for more than there is time in the world."""

    def __init__(self, steps: int, what: str) -> None:
        self._left = self._steps = steps
        self._what = what

    def take(self, steps: int = 1) -> None:
        self._left -= steps
        if self._left < 0:
            raise TooComplex(f"{self._what} would take more than {self._steps} steps: the schema is too complex")


def digest(text: str) -> bytes:
    return sha256(text.encode()).digest()


def decode_json(text: str, what: str) -> Any:
    """InvalidSchema: not JSON, or nested too deep."""
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise InvalidSchema(f"{what} is not JSON: {error}") from None
    check_depth(document, what)
    return document


def check_depth(document: Any, what: str) -> None:
    level = [document]
    for _ in range(DEPTH_MAX):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return
    raise InvalidSchema(f"{what} is nested more than {DEPTH_MAX} levels deep")


def _inside(document: Any) -> Sequence[Any]:
    if isinstance(document, Mapping):
        return list(document.values())
    return document if isinstance(document, list) else ()


def compact(document: Any, *, is_sorted: bool = False) -> str:
    return msgspec.json.encode(document, order="deterministic" if is_sorted else None).decode()
