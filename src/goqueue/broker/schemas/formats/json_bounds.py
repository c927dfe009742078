"""Bounds in a JSON schema: which way they may move without refusing a value that was allowed before."""

from collections.abc import Iterator
from typing import Any

LOWER = ("minLength", "minItems", "minProperties", "minContains", "minimum", "exclusiveMinimum")
UPPER = ("maxLength", "maxItems", "maxProperties", "maxContains", "maximum", "exclusiveMaximum")


def bound_changes(old: dict[str, Any], new: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Keywords that allow less than before, and how."""
    for keyword, is_lower in (*((each, True) for each in LOWER), *((each, False) for each in UPPER)):
        after: Any = new.get(keyword)
        before: Any = old.get(keyword)
        if not _is_number(after) or (is_lower and after <= 0 and keyword in LOWER[:4]):
            continue
        if not _is_number(before):
            yield keyword, "was added"
        elif after > before if is_lower else after < before:
            yield keyword, f"was {'raised' if is_lower else 'lowered'} from {before} to {after}"
    yield from _multiples(old.get("multipleOf"), new.get("multipleOf"))
    if "pattern" in new and new["pattern"] != old.get("pattern"):
        yield "pattern", "was changed" if "pattern" in old else "was added"
    if new.get("uniqueItems") is True and old.get("uniqueItems") is not True:
        yield "uniqueItems", "was added"


def _multiples(before: Any, after: Any) -> Iterator[tuple[str, str]]:
    if not _is_number(after) or not after:
        return
    if not _is_number(before):
        yield "multipleOf", "was added"
    elif before % after:
        yield "multipleOf", f"was changed from {before} to {after}, of which it is no multiple"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
