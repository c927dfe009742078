"""What is written under a field of a struct belongs into the document, too: its readers are those it is meant for."""

import ast
import inspect
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec
from msgspec import Struct

from goqueue.doors.http.common_words import EXACT, WORDS


def describe_fields(kind: type[Struct], properties: dict[str, Any]) -> None:
    """Give each property its words: those under the field, those of its type, or what its name means everywhere."""
    for field in msgspec.structs.fields(kind):
        schema = properties[field.encode_name]
        words = schema.get("description") or _words(kind, field.name) or _words_of_type(schema)
        words = words or WORDS.get(field.encode_name, "")
        if words:
            schema["description"] = words if words.endswith(".") else f"{words}."


def _words(kind: type[Struct], field: str) -> str:
    """Of the class itself, or of the one that it has the field from."""
    for each in kind.__mro__:
        if issubclass(each, Struct) and field in inspect.get_annotations(each):
            written = _words_of_module(each.__module__).get((each.__name__, field), "")
            return written or EXACT.get(f"{each.__name__}.{field}", "")
    return ""


def _words_of_type(schema: Mapping[str, Any]) -> str:
    """Of a field that may be null: what the rest of its type says."""
    return next((str(each["description"]) for each in schema.get("anyOf", ()) if "description" in each), "")


@cache
def _words_of_module(name: str) -> dict[tuple[str, str], str]:
    """By class and field."""
    found = {}
    for made in ast.parse(inspect.getsource(sys.modules[name])).body:
        if not isinstance(made, ast.ClassDef):
            continue
        for field, words in zip(made.body, made.body[1:]):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(words, ast.Expr)
                and isinstance(words.value, ast.Constant)
                and isinstance(words.value.value, str)
            ):
                found[made.name, field.target.id] = " ".join(words.value.value.split())
    return found
