"""Whether a JSON schema accepts all that another accepted: what BACKWARD means for a format without field ids.

The rules are those that Confluent's registry applies. What a schema says of a property, it may say by name, by
pattern, or for all others (`additionalProperties`); the same holds for the items of an array. So a property that was
added is compared with what the older schema allowed under its name: anything, if it was open, nothing, if it was
closed. A default stands in for a property that becomes required.
"""

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote

import re2  # type: ignore[import-untyped]

from goqueue.broker.schemas.formats.json_bounds import bound_changes
from goqueue.broker.schemas.formats.json_matching import most_pairs
from goqueue.broker.schemas.formats.parsed import Budget, compact

SAYS_NOTHING = frozenset(
    {"$id", "id", "$schema", "$comment", "$anchor", "$defs", "definitions", "title", "description", "default"}
    | {"examples", "deprecated", "readOnly", "writeOnly", "format", "contentEncoding", "contentMediaType"}
)
"""Nothing about which values are allowed; `format` is an annotation."""
INFERRED = {
    "object": ("properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties"),
    "array": ("items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains"),
    "string": ("minLength", "maxLength", "pattern"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
ALL_TYPES = frozenset(("null", "boolean", "object", "array", "number", "integer", "string"))
SUMS = ("anyOf", "oneOf")
UNCHANGED = ("if", "then", "else", "contains", "propertyNames", "unevaluatedProperties", "unevaluatedItems")
"""Keywords of which only the same is known to be compatible."""
REFERENCES_MAX = 100
STEPS_MAX = 50_000
PART_WEIGHT = 8
"""So many words, properties or values of a schema are a step more."""


class Documents:
    """A schema and those that it refers to by name."""

    def __init__(self, root: Any, known: dict[str, Any]) -> None:
        self.root = root
        self._known = known
        self._ids = dict(_with_ids(root))

    def resolve(self, schema: Any, root: Any) -> tuple[Any, Any]:
        """A schema behind its references, and the document that it stands in."""
        for _ in range(REFERENCES_MAX):
            if not isinstance(schema, dict) or "$ref" not in schema:
                break
            schema, root = self._target(str(schema["$ref"]), root)
        return schema, root

    def follow(self, reference: str, root: Any) -> tuple[Any, Any]:
        """What one reference leads to. LookupError: that is not known here."""
        found = self._target(reference, root)
        if found[0] is True:
            raise LookupError(reference)
        return found

    def _target(self, reference: str, root: Any) -> tuple[Any, Any]:
        name, _, pointer = reference.partition("#")
        if name:
            root = self._known.get(name, self._ids.get(name, True))
        return _point(root, pointer), root


def _with_ids(document: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(document, dict):
        name = document.get("$id", document.get("id"))
        if isinstance(name, str):
            yield name, document
        for each in document.values():
            yield from _with_ids(each)
    elif isinstance(document, list):
        for each in document:
            yield from _with_ids(each)


def _point(root: Any, pointer: str) -> Any:
    """True, which allows anything, where a pointer leads nowhere: the compiler has refused that already."""
    if pointer and not pointer.startswith("/"):
        return next((each for each in _inner(root) if each.get("$anchor") == pointer), True)
    for step in filter(None, pointer.split("/")):
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(root, list) and name.isdigit() and int(name) < len(root):
            root = root[int(name)]
        elif isinstance(root, dict):
            root = root.get(name, True)
        else:
            return True
    return root


def _inner(document: Any) -> Iterator[dict[str, Any]]:
    if isinstance(document, dict):
        yield document
    for each in document.values() if isinstance(document, dict) else document if isinstance(document, list) else ():
        yield from _inner(each)


def incompatibilities(older: Documents, newer: Documents) -> list[str]:
    """Why values that `older` accepts may be refused by `newer`. TooComplex: it would take too long to say."""
    comparison = _Comparison(older, newer, Budget(STEPS_MAX, "comparing two JSON schemas"))
    comparison.compare("#", (older.root, older.root), (newer.root, newer.root))
    return comparison.found


Placed = tuple[Any, Any]
"""A schema and the document in which its pointers lead somewhere."""


class _Comparison:
    """Schemas are compared in pairs, each as if those that it stands in were fine. A pair that fails even so fails for
    good; what was found fine under an assumption that failed is compared again.
    """

    def __init__(self, older: Documents, newer: Documents, budget: Budget) -> None:
        self._older = older
        self._newer = newer
        self._assumed: dict[tuple[int, int], None] = {}
        """Fine, or under way; in the order in which they were begun."""
        self._failed: set[tuple[int, int]] = set()
        self._kept: list[Any] = []
        """What was made here and compared: an id must not be given again meanwhile."""
        self._budget = budget
        self.found: list[str] = []

    def _say(self, path: str, why: str) -> None:
        self.found.append(f"{path}: {why}")

    def _accepts(self, path: str, old: Placed, new: Placed) -> bool:
        """On trial: nothing is said."""
        before, self.found = self.found, []
        self.compare(path, old, new)
        is_fine, self.found = not self.found, before
        return is_fine

    def compare(self, path: str, old: Placed, new: Placed) -> None:
        old, new = self._older.resolve(*old), self._newer.resolve(*new)
        if old[0] is False or _is_open(new[0]):
            return
        pair = (id(old[0]), id(new[0]))
        if pair in self._assumed:
            return
        self._budget.take(1 + _weight(old[0]) + _weight(new[0]))
        if new[0] is False:
            self._say(path, "nothing is allowed here any more")
            return
        if pair in self._failed:
            self._say(path, "is not compatible here either")
            return
        self._assumed[pair] = None
        self._kept.append((old[0], new[0]))
        said = len(self.found)
        self._compare_dicts(path, _as_dict(old), _as_dict(new))
        if len(self.found) > said:
            self._failed.add(pair)
            while self._assumed.popitem()[0] != pair:
                pass

    def _compare_dicts(self, path: str, old: Placed, new: Placed) -> None:
        if self._try_sum(path, old, new):
            return
        self._compare_types(path, old[0], new[0])
        self._compare_values(path, old[0], new[0])
        for name, why in bound_changes(old[0], new[0]):
            self._say(f"{path}/{name}", why)
        types = _types(new[0]) & _types(old[0])
        if "object" in types:
            self._compare_objects(path, old, new)
        if "array" in types:
            self._compare_arrays(path, old, new)
        for keyword in ("allOf", *SUMS):
            self._compare_combined(path, keyword, old, new)
        self._compare_not(path, old, new)
        for keyword in UNCHANGED:
            if keyword in new[0] and compact(new[0][keyword]) != compact(old[0].get(keyword)):
                self._say(f"{path}/{keyword}", "was added or changed")

    def _try_sum(self, path: str, old: Placed, new: Placed) -> bool:
        """One schema that becomes one of several choices, or an only choice that becomes the schema."""
        for keyword in (*SUMS, "allOf"):
            choices = new[0].get(keyword)
            if choices and keyword not in old[0] and _is_alone(new[0], keyword):
                if keyword == "allOf" and len(choices) > 1:
                    continue
                if any(self._accepts(path, old, (each, new[1])) for each in choices):
                    return True
            choices = old[0].get(keyword)
            if choices and keyword not in new[0] and _is_alone(old[0], keyword):
                tried = [self._accepts(path, (each, old[1]), new) for each in choices]
                if any(tried) if keyword == "allOf" else all(tried):
                    return True
        return False

    def _compare_types(self, path: str, old: dict[str, Any], new: dict[str, Any]) -> None:
        lost = _types(old) - _types(new)
        if "number" in _types(new):
            lost -= {"integer"}
        if lost:
            self._say(f"{path}/type", f"{', '.join(sorted(lost))} is not allowed any more")

    def _compare_values(self, path: str, old: dict[str, Any], new: dict[str, Any]) -> None:
        allowed, were = _values(new), _values(old)
        if allowed is None:
            return
        if were is None:
            self._say(f"{path}/enum", "values are listed now that were free before")
        elif lost := sorted(were - allowed):
            self._say(f"{path}/enum", f"{', '.join(lost)} is not allowed any more")

    def _compare_objects(self, path: str, old: Placed, new: Placed) -> None:
        for name in sorted({**_part(old, "properties"), **_part(new, "properties")}):
            place = f"{path}/properties/{name}"
            self._compare_member(place, _property(old, name), _property(new, name), name in _part(old, "properties"))
        for pattern, schema in _part(new, "patternProperties").items():
            before = _part(old, "patternProperties").get(pattern, old[0].get("additionalProperties", True))
            self.compare(f"{path}/patternProperties/{pattern}", (before, old[1]), (schema, new[1]))
        rest_old, rest_new = (each[0].get("additionalProperties", True) for each in (old, new))
        self.compare(f"{path}/additionalProperties", (rest_old, old[1]), (rest_new, new[1]))
        for name in sorted(set(new[0].get("required", ())) - set(old[0].get("required", ()))):
            schema, _ = self._newer.resolve(_part(new, "properties").get(name), new[1])
            if not isinstance(schema, dict) or "default" not in schema:
                self._say(f"{path}/required", f"{name} is required now and has no default")
        self._compare_dependencies(path, old, new)

    def _compare_member(self, place: str, old: Placed, new: Placed, was_there: bool) -> None:
        if not was_there and _is_open(old[0]) and not _is_open(self._newer.resolve(*new)[0]):
            self._say(place, "was added to an open content model: anything was allowed under its name before")
        elif new[0] is False and old[0] is not False:
            self._say(place, "was removed from a closed content model: nothing is allowed under its name any more")
        else:
            self.compare(place, old, new)

    def _compare_dependencies(self, path: str, old: Placed, new: Placed) -> None:
        for keyword in ("dependencies", "dependentRequired", "dependentSchemas"):
            before = _part(old, keyword)
            for name, needed in _part(new, keyword).items():
                place = f"{path}/{keyword}/{name}"
                if not isinstance(needed, list):
                    self.compare(place, (before.get(name, True), old[1]), (needed, new[1]))
                elif not set(needed) <= set(before.get(name, ()) if isinstance(before.get(name), list) else ()):
                    self._say(place, "more properties are needed beside it than before")

    def _compare_arrays(self, path: str, old: Placed, new: Placed) -> None:
        first_old, rest_old = _items(old[0])
        first_new, rest_new = _items(new[0])
        for place in range(max(len(first_old), len(first_new))):
            before = first_old[place] if place < len(first_old) else rest_old
            after = first_new[place] if place < len(first_new) else rest_new
            self.compare(f"{path}/items/{place}", (before, old[1]), (after, new[1]))
        self.compare(f"{path}/items", (rest_old, old[1]), (rest_new, new[1]))

    def _compare_combined(self, path: str, keyword: str, old: Placed, new: Placed) -> None:
        """All parts of a product must find a narrower one among the old; all old choices of a sum a wider one."""
        before, after = old[0].get(keyword), new[0].get(keyword)
        if not after:
            return
        other = next((each for each in SUMS if each in old[0]), None)
        if not before and keyword == "anyOf" and other:
            before = old[0][other]  # any of them is less strict than exactly one of them
        place = f"{path}/{keyword}"
        if not before:
            if any(not self._accepts(place, old, (each, new[1])) for each in after):
                self._say(place, "was added")
            return
        fits: Callable[[int, int], bool]
        if keyword == "allOf":
            wanted, among = len(after), len(before)

            def fits(one: int, other: int) -> bool:
                return self._accepts(place, (before[other], old[1]), (after[one], new[1]))
        else:
            wanted, among = len(before), len(after)

            def fits(one: int, other: int) -> bool:
                return self._accepts(place, (before[one], old[1]), (after[other], new[1]))

        if most_pairs(wanted, among, fits) < wanted:
            self._say(place, "not every part has a compatible one in the other version")

    def _compare_not(self, path: str, old: Placed, new: Placed) -> None:
        if "not" not in new[0]:
            return
        if "not" not in old[0]:
            self._say(f"{path}/not", "was added")
            return
        turned = _Comparison(self._newer, self._older, self._budget)
        turned.compare(f"{path}/not", (new[0]["not"], new[1]), (old[0]["not"], old[1]))
        if turned.found:
            self._say(f"{path}/not", "refuses more than before")


def _weight(schema: Any) -> int:
    """What is looked at whenever its schema is met: names, values, and what must not change."""
    if not isinstance(schema, dict):
        return 0
    parts = len(schema) + sum(len(each) for each in schema.values() if isinstance(each, dict | list | str))
    return parts // PART_WEIGHT


def _is_open(schema: Any) -> bool:
    return schema is True or (isinstance(schema, dict) and SAYS_NOTHING.issuperset(schema))


def _as_dict(placed: Placed) -> tuple[dict[str, Any], Any]:
    return (placed[0] if isinstance(placed[0], dict) else {}), placed[1]


def _is_alone(schema: dict[str, Any], keyword: str) -> bool:
    return SAYS_NOTHING.issuperset(schema.keys() - {keyword})


def _part(placed: Placed, keyword: str) -> dict[str, Any]:
    part = placed[0].get(keyword)
    return part if isinstance(part, dict) else {}


def _types(schema: dict[str, Any]) -> frozenset[str]:
    said = schema.get("type")
    if isinstance(said, str):
        return frozenset((said,))
    if isinstance(said, list):
        return frozenset(map(str, said))
    if _values(schema) is not None:
        return frozenset(_type_of(each) for each in schema.get("enum", [schema.get("const")]))
    inferred = frozenset(kind for kind, words in INFERRED.items() if any(word in schema for word in words))
    return inferred or ALL_TYPES


def _type_of(value: Any) -> str:
    kinds = ((bool, "boolean"), (str, "string"), (int, "integer"), (float, "number"), (dict, "object"), (list, "array"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "null")


def _values(schema: dict[str, Any]) -> set[str] | None:
    if "const" in schema:
        return {compact(schema["const"])}
    return {compact(each) for each in schema["enum"]} if isinstance(schema.get("enum"), list) else None


def _property(placed: Placed, name: str) -> Placed:
    schema, root = placed
    if name in _part(placed, "properties"):
        return schema["properties"][name], root
    for pattern, inner in _part(placed, "patternProperties").items():
        try:
            if re2.search(pattern, name):
                return inner, root
        except re2.error:
            continue
    return schema.get("additionalProperties", True), root


def _items(schema: dict[str, Any]) -> tuple[list[Any], Any]:
    """The schemas of the first items, and that of all others: draft 2020-12 renamed both."""
    if isinstance(schema.get("prefixItems"), list):
        return schema["prefixItems"], schema.get("items", True)
    items = schema.get("items", True)
    return (items, schema.get("additionalItems", True)) if isinstance(items, list) else ([], items)
