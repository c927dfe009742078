"""What it may cost to check a value against a JSON schema, seen from the schema alone.

A check meets a place of the value once for every way that leads to it. Where references fork, each level may double the
ways: forty levels fit into 4 KB. Most schemas do nothing of the kind and are checked as they are. Those that might
are rewritten so that every reference is counted, and a check that takes too many of them is given up.

An enum of strings or of integers is looked up at once. Any other is gone through item by item for each place of the
value, and two fractions take microseconds to compare: a long one is counted too, by its length.
"""

from collections.abc import Iterator
from typing import Any

from goqueue.broker.schemas.formats.json_evolution import Documents
from goqueue.broker.schemas.formats.parsed import TooComplex

WAYS_MAX = 64
"""To one place of a value: a choice of fifty messages is nothing unusual. More is counted."""
INLINE_MAX = 256
"""To one place without a reference, which cannot be counted in order: more is refused."""
PATTERNS_MAX = 64
"""Of the names of properties in one schema: each is tried on each property, without a step that could be counted."""
LITERAL_STEPS_MAX = 20_000
"""For one enum: to go through a longer one once takes more than any check may."""
COUNT = "gq-count"
LONG_STEPS = 64
"""What it may take to go through an enum that is not counted."""
_SCALARS_PER_STEP, _STEPS_PER_FRACTION = 32, 5
_EXACT_MAX = 1 << 53

_EACH = ("allOf", "anyOf", "oneOf")
_ONE = ("not", "if", "then", "else")
_BY_NAME = ("dependentSchemas", "dependencies")
_ITEMS = ("items", "prefixItems", "additionalItems", "contains", "unevaluatedItems")
_REST = ("additionalProperties", "unevaluatedProperties", "propertyNames")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_MAPS = frozenset(("properties", "patternProperties", "definitions", "$defs", *_BY_NAME))
_LITERAL = frozenset(("const", "enum", "default", "examples"))
_BESIDE_REFERENCE = frozenset(("$schema", "$id", "id", "definitions", "$defs", "$comment", "title", "description"))
_BOTH_COUNT = ("2019-09", "2020-12")
"""Drafts in which what stands beside a reference counts too; before them it is ignored."""

_HERE, _ANY, _ITEM = 0, 1, 2
Label = int | str
"""Where an inner schema looks: at the same place, at any property, at an item, or at the property of that name. Other
properties than those that have a name are a place of their own.
"""


def is_costly(documents: Documents) -> bool:
    """Whether some value of moderate size may take very many steps."""
    return ways_to(documents) > WAYS_MAX


def ways_to(documents: Documents) -> int:
    """How many lead to one place of a value at most; more than WAYS_MAX: too many for a check that is not counted."""
    ways = _Ways(documents)
    try:
        return WAYS_MAX + 1 if ways.are_many() else max(1, ways.most)
    except (RecursionError, LookupError):  # nested beyond what can be followed, or a reference that only others resolve
        return WAYS_MAX + 1


def check_breadth(document: Any) -> None:
    """TooComplex: it has more alternatives in one place than can be tried in a moment, and no value has a use for."""
    if _inline(document) > INLINE_MAX:
        raise TooComplex(
            f"more than {INLINE_MAX} schemas apply to one value: the schema is too complex; use references"
        )


def _inline(schema: Any) -> int:
    """How many schemas are tried at one place of a value, at most, references not followed."""
    if isinstance(schema, list):
        return max(map(_inline, schema), default=0)
    if not isinstance(schema, dict):
        return 0
    if len(_map(schema.get("patternProperties"))) > PATTERNS_MAX:
        raise TooComplex(f"more than {PATTERNS_MAX} patternProperties in one schema: it is too complex")
    if literal_steps(schema) > LITERAL_STEPS_MAX:
        raise TooComplex("an enum with more fractions, lists or objects than can be gone through: it is too complex")
    here = 1 + sum(_inline(each) for keyword in _EACH for each in _list(schema.get(keyword)))
    elsewhere = (each for name, each in schema.items() if name not in _EACH and name not in _LITERAL)
    return max(here, max(map(_inline, elsewhere), default=0))


def literal_steps(schema: dict[str, Any]) -> int:
    """What it takes to compare a value with what `enum` and `const` name."""
    found = schema.get("enum")
    literals = found if isinstance(found, list) else []
    kinds = {type(each) for each in literals}
    if kinds == {str} or (kinds == {int} and all(abs(each) < _EXACT_MAX for each in literals)):
        literals = []
    return _steps_of(literals) + (_steps_of([schema["const"]]) if "const" in schema else 0)


def _steps_of(literals: list[Any]) -> int:
    steps = scalars = 0
    waiting = list(literals)
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict | list):
            steps += 1
            waiting += each.values() if isinstance(each, dict) else each
        elif isinstance(each, float) or (isinstance(each, int) and abs(each) >= _EXACT_MAX):
            steps += _STEPS_PER_FRACTION
        else:
            scalars += 1
    return steps + scalars // _SCALARS_PER_STEP


class _Ways:
    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._ways: dict[int, int] = {}
        self._order: dict[int, int] = {}
        """By schema: when it was met first."""
        self._reach: dict[int, int] = {}
        """By schema: the earliest one on the way to it that it leads back to."""
        self._path: list[tuple[int, list[tuple[Label, int]]]] = []
        self._on_path: set[int] = set()
        self._loops = False
        self.most = 0

    def are_many(self) -> bool:
        root = self._documents.root
        self.most = self._visit(root, root)
        return self.most > WAYS_MAX or self._loops

    def _visit(self, schema: Any, root: Any) -> int:
        """Tarjan's algorithm for loops, and the ways as it comes back."""
        key = id(schema)
        if not isinstance(schema, dict):
            return 0
        if key in self._order:
            return self._ways.get(key, 1)
        self._order[key] = self._reach[key] = len(self._order)
        edges: list[tuple[Label, int]] = []
        self._path.append((key, edges))
        self._on_path.add(key)
        here, places = 0, dict[Label, int]()
        for label, inner, inner_root in self._inner(schema, root):
            ways = self._visit(inner, inner_root)
            if id(inner) in self._on_path:
                edges.append((label, id(inner)))
                self._reach[key] = min(self._reach[key], self._reach[id(inner)])
            if label == _HERE:
                here += ways
            else:
                places[label] = places.get(label, 0) + ways
        own = 0 if "$ref" in schema else 1 + (WAYS_MAX if literal_steps(schema) > LONG_STEPS else 0)
        found = here + max(own, places.pop(_ANY, 0) + max(places.values(), default=0))
        self._ways[key] = min(found, WAYS_MAX + 1)
        if self._reach[key] == self._order[key]:
            self._close_loop(key)
        return self._ways[key]

    def _close_loop(self, first: int) -> None:
        members = []
        while True:
            key, edges = self._path.pop()
            self._on_path.discard(key)
            members.append((key, edges))
            if key == first:
                break
        inside = {key for key, _ in members}
        self._loops |= any(_forks([label for label, target in edges if target in inside]) for _, edges in members)

    def _inner(self, schema: dict[str, Any], root: Any) -> Iterator[tuple[Label, Any, Any]]:
        for keyword in _EACH:
            yield from ((_HERE, each, root) for each in _list(schema.get(keyword)))
        yield from ((_HERE, schema[keyword], root) for keyword in _ONE if keyword in schema)
        for keyword in _BY_NAME:
            yield from ((_HERE, each, root) for each in _map(schema.get(keyword)).values())
        yield from ((name, each, root) for name, each in _map(schema.get("properties")).items())
        yield from ((_ANY, each, root) for each in _map(schema.get("patternProperties")).values())
        yield from ((f"{keyword}/", schema[keyword], root) for keyword in _REST if keyword in schema)
        for keyword in _ITEMS:
            inner = schema.get(keyword)
            yield from ((_ITEM, each, root) for each in (inner if isinstance(inner, list) else [inner]) if each)
        if any(keyword in schema for keyword in _REFERENCES[1:]):
            raise LookupError("it depends on who refers to it")
        if isinstance(schema.get("$ref"), str):
            yield _HERE, *self._documents.follow(schema["$ref"], root)


def _forks(labels: list[Label]) -> bool:
    """Whether two ways lead round a loop from one schema and one place."""
    here, anywhere = labels.count(_HERE), labels.count(_ANY)
    others = [label for label in labels if label not in (_HERE, _ANY)]
    return here > 1 or (here + anywhere > 0 and len(labels) > 1) or len(set(others)) < len(others)


def counted(document: Any, *, is_everywhere: bool = False) -> Any:
    """The same schema, with COUNT before every reference and every long enum. `is_everywhere`: and in every schema, so
    that a check of a large value lets other threads have their turn."""
    said = str(document.get("$schema", "")) if isinstance(document, dict) else ""
    return _counted(document, any(draft in said for draft in _BOTH_COUNT), is_everywhere)


def _counted(document: Any, both_count: bool, is_everywhere: bool) -> Any:
    if isinstance(document, list):
        return [_counted(each, both_count, is_everywhere) for each in document]
    if not isinstance(document, dict):
        return document
    references = {name: document[name] for name in _REFERENCES if isinstance(document.get(name), str)}
    made: dict[str, Any] = {}
    for name, each in document.items():
        if name in references or not (both_count or not references or name in _BESIDE_REFERENCE):
            continue
        if name in _MAPS and isinstance(each, dict):
            made[name] = {key: _counted(inner, both_count, is_everywhere) for key, inner in each.items()}
        else:
            made[name] = each if name in _LITERAL else _counted(each, both_count, is_everywhere)
    counting: list[Any] = [{"allOf": [{COUNT: 1}, references]}] if references else []
    if (steps := literal_steps(made)) > LONG_STEPS:
        moved = {name: made.pop(name) for name in ("enum", "const") if name in made}
        counting.append({"allOf": [{COUNT: steps}, moved]})
    if counting:  # behind what is there: others may refer to it by its place
        made["allOf"] = [*_list(made.get("allOf")), *counting]
    elif is_everywhere:
        made[COUNT] = 1
    return made


def _list(found: Any) -> list[Any]:
    return found if isinstance(found, list) else []


def _map(found: Any) -> dict[str, Any]:
    return found if isinstance(found, dict) else {}
