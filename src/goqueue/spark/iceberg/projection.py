"""How PyIceberg brings rows into the columns of a table, with a fault of its own mended.

It rebuilds a list of records, and a map whose values are records, and forgets which of them were null: they become
empty. That would be so in the files that we write, and again whenever they are read.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyiceberg.io.pyarrow
from pyiceberg.io.pyarrow import ArrowProjectionVisitor
from pyiceberg.types import ListType, MapType


def keep_nulls() -> None:
    """Of this process, from now on."""
    pyiceberg.io.pyarrow.ArrowProjectionVisitor = _Projection  # type: ignore[misc]  # there is no other way in


class _Projection(ArrowProjectionVisitor):
    def list(self, list_type: ListType, list_array: Any, value_array: Any) -> Any:
        return _with_nulls(super().list(list_type, list_array, value_array), list_array)

    def map(self, map_type: MapType, map_array: Any, key_result: Any, value_result: Any) -> Any:
        return _with_nulls(super().map(map_type, map_array, key_result, value_result), map_array)


def _with_nulls(made: Any, given: Any) -> Any:
    if made is None or made.null_count == given.null_count:
        return made
    offsets = pc.add(made.offsets, 0)  # a copy of its own: those of a part of an array take no nulls
    parts = (made.keys, made.items) if isinstance(made, pa.MapArray) else (made.values,)
    return type(made).from_arrays(offsets, *parts, type=made.type, mask=given.is_null())
