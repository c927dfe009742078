"""What a change of the API would break for programs that were written before it."""

from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]
REFERENCE = "#/components/schemas/"


def broken_in_grpc(old: Json, new: Json) -> Iterator[str]:
    """Fields are only ever added, under new numbers; so are values of enums, methods and messages."""
    for name, members in old.items():
        if name not in new:
            yield f"{name} is gone"
            continue
        for number, told in members.items():
            if new[name].get(number) != told:
                yield f"{name}: {number} was {told!r} and is {new[name].get(number)!r}"


def broken_in_http(old: Json, new: Json) -> Iterator[str]:
    for path, methods in old["paths"].items():
        for method, operation in methods.items():
            now = new["paths"].get(path, {}).get(method)
            if now is None:
                yield f"{method.upper()} {path} is gone"
                continue
            where = f"{method.upper()} {path}"
            yield from (f"{where}: {why}" for why in _parameters(operation, now))
            compare = _Comparison(old, new)
            yield from (f"{where}: body {why}" for why in compare.changes(_body(operation), _body(now), is_sent=True))
            for status, reply in operation["responses"].items():
                if status >= "300":
                    continue
                later = now["responses"].get(status)
                if later is None:
                    yield f"{where}: never answers {status} any more"
                    continue
                yield from (
                    f"{where}: answer {why}" for why in compare.changes(_schema(reply), _schema(later), is_sent=False)
                )


def _parameters(old: Json, new: Json) -> Iterator[str]:
    before = {each["name"]: each for each in old.get("parameters", [])}
    after = {each["name"]: each for each in new.get("parameters", [])}
    for name in before.keys() - after.keys():
        yield f"parameter {name} is gone"
    for name, each in after.items():
        if each.get("required") and not before.get(name, {}).get("required"):
            yield f"parameter {name} is required now"


def _schema(holder: Json) -> Json:
    content = holder.get("content", {})
    found: Json = content.get("application/json", {}).get("schema", {})
    return found


def _body(operation: Json) -> Json:
    return _schema(operation.get("requestBody", {}))


class _Comparison:
    """Of two documents. Each pair of named types is compared once: types may hold themselves."""

    def __init__(self, old: Json, new: Json) -> None:
        self._old, self._new = old, new
        self._seen: set[tuple[str, str, bool]] = set()

    def changes(self, old: Json, new: Json, *, is_sent: bool) -> Iterator[str]:
        pair = (old.get("$ref", ""), new.get("$ref", ""), is_sent)
        if pair[0] and pair in self._seen:
            return
        self._seen.add(pair)
        before, after = self._resolve(self._old, old), self._resolve(self._new, new)
        if _kind(before) != _kind(after):
            yield f"was {_kind(before)} and is {_kind(after)}"
            return
        if "enum" in before and "enum" in after and (gone := set(before["enum"]) - set(after["enum"])):
            yield f"does not know {sorted(map(str, gone))} any more"
        fields, later = before.get("properties", {}), after.get("properties", {})
        for name in sorted(fields.keys() - later.keys()):
            yield f"has no field {name} any more"
        must, must_later = set(before.get("required", [])), set(after.get("required", []))
        for name in sorted(must_later - must if is_sent else (must - must_later) & later.keys()):
            yield f"needs {name} now" if is_sent else f"may come without {name} now"
        for name in sorted(fields.keys() & later.keys()):
            yield from (f"{name} {why}" for why in self.changes(fields[name], later[name], is_sent=is_sent))
        if "items" in before and "items" in after:
            yield from (f"[] {why}" for why in self.changes(before["items"], after["items"], is_sent=is_sent))

    @staticmethod
    def _resolve(document: Json, schema: Json) -> Json:
        if "$ref" not in schema:
            return schema
        found: Json = document["components"]["schemas"][schema["$ref"].removeprefix(REFERENCE)]
        return found


def _kind(schema: Json) -> str:
    """Its type, or the types that it may have."""
    if "anyOf" in schema:
        return " or ".join(
            sorted(each.get("$ref", "").removeprefix(REFERENCE) or _kind(each) for each in schema["anyOf"])
        )
    return str(schema.get("type", "anything"))
