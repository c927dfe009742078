"""The fields of whatever is made of fields: structs, named tuples and dataclasses."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import msgspec


def fields_of(value: Any) -> tuple[str, ...]:
    """Nothing, of anything else."""
    if isinstance(value, msgspec.Struct):
        return value.__struct_fields__
    if isinstance(value, tuple):
        return getattr(value, "_fields", ())
    return tuple(each.name for each in fields(value)) if is_dataclass(value) else ()


def with_fields(value: Any, changes: Mapping[str, Any]) -> Any:
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.replace(value, **changes)
    changed: Any = replace(value, **changes) if not hasattr(value, "_replace") else value._replace(**changes)
    return changed
