"""What must not be shown: not in a log, the text of an error, the output of a debugger or an answer."""

import hmac
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, Generic, TypeVar

HIDDEN = "***"

V = TypeVar("V", bound=str | bytes)
C = TypeVar("C", bound=type)


class Secret(Generic[V]):
    """A text or bytes that only `reveal` gives. What writes texts gets `***`; JSON and msgspec, which know no such
    type, refuse it."""

    __slots__ = ("_value",)

    def __init__(self, value: V) -> None:
        self._value = value

    def reveal(self) -> V:
        return self._value

    def __repr__(self) -> str:
        return HIDDEN

    def __format__(self, _spec: str) -> str:
        return HIDDEN

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        """Takes as long for any two of the same length."""
        if not isinstance(other, Secret) or type(self._value) is not type(other._value):
            return NotImplemented
        return hmac.compare_digest(_bytes_of(self._value), _bytes_of(other._value))

    def __hash__(self) -> int:
        return hash(self._value)


def _bytes_of(value: str | bytes) -> bytes:
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value


def hides(*names: str) -> Callable[[C], C]:
    """For a class whose fields cannot be a `Secret`, since they are stored or sent as they are: its text leaves the
    values of these out."""

    def changed(cls: C) -> C:
        shown = _fields_of(cls)
        assert set(names) <= set(shown), f"{cls.__name__} has no such fields"

        def __repr__(self: Any) -> str:  # noqa: N807  it becomes one
            texts = (f"{name}={HIDDEN if name in names else repr(getattr(self, name))}" for name in shown)
            return f"{type(self).__name__}({', '.join(texts)})"

        cls.__repr__ = __repr__  # type: ignore[method-assign,assignment]
        return cls

    return changed


def _fields_of(cls: Any) -> tuple[str, ...]:
    if is_dataclass(cls):
        return tuple(each.name for each in fields(cls))
    found: tuple[str, ...] = getattr(cls, "__struct_fields__", ()) or getattr(cls, "_fields", ())
    return found
