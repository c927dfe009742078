"""JSON Schema, drafts 4 to 2020-12, by `jsonschema-rs`: patterns are matched in linear time, and nothing is ever
fetched; what a schema refers to is in the schema itself or among its references.
"""

from collections.abc import Callable
from itertools import islice
from threading import local
from typing import Any

import jsonschema_rs
import msgspec

from goqueue.broker.schemas.formats.json_cost import COUNT, WAYS_MAX, check_breadth, counted, ways_to
from goqueue.broker.schemas.formats.json_evolution import Documents, incompatibilities
from goqueue.broker.schemas.formats.parsed import TURN_BYTES_MAX, Allowance, Dependencies, compact, decode_json, digest
from goqueue.model.schemas import InvalidSchema

PATTERN_BYTES_MAX = 1024 * 1024
"""What one pattern may take when it is compiled."""
BASE_URI = "json-schema:///"
"""What names without a scheme are relative to."""
UNCOUNTED = 1 << 62
STEPS_MAX = 20_000
"""References that are followed to check one value, where they are counted: ten milliseconds."""
TURN_WAYS_BYTES = 4 * TURN_BYTES_MAX
"""Bytes of a value, times the ways that lead to each place of it, which are checked in a moment."""
FAULTS_MAX = 3
ALL_FAULTS_BYTES, ALL_FAULTS_PRODUCT = 2048, 1024 * 1024
"""The library finds all faults before it gives the first three, and puts into each what the schema says of it: of
larger values, or where the bytes of value and schema multiply to more, only the first fault is looked for."""
REASON_VALUE_BYTES, REASON_SCHEMA_BYTES = 128 * 1024, 64 * 1024
"""Of still larger ones none, since that takes long and nobody else would have a turn meanwhile."""
SHOWN_CHARS_MAX = 200


class JsonSchema:
    def __init__(self, text: str, dependencies: Dependencies = ()) -> None:
        document = decode_json(text, "the schema")
        if not isinstance(document, dict | bool):
            raise InvalidSchema("a JSON schema is an object, true or false")
        self._known = {each.name: decode_json(each.text, f"the schema {each.name!r}") for each in dependencies}
        self.text = compact(document)
        self.fingerprint = digest(self.text)
        self.documents = Documents(document, self._known)
        for each in (document, *self._known.values()):
            check_breadth(each)
        ways = ways_to(self.documents)
        self._is_costly = ways > WAYS_MAX
        """Counted, since it may take many steps."""
        self.turn_bytes_max = min(TURN_BYTES_MAX, TURN_WAYS_BYTES // ways)
        self._steps = _Steps()
        self._validator = self._compile(document, counted if self._is_costly else _as_it_is)
        self._yielding: Any = None
        """For large values, made with the first of them."""

    def _compile(self, document: Any, rewritten: Callable[[Any], Any]) -> Any:
        def look_up(uri: str) -> Any:
            for name, schema in self._known.items():
                if uri == name or uri.endswith(f"/{name}"):
                    return rewritten(schema)
            raise ValueError(f"{uri} is none of the references of this schema")

        compile_as: Any = jsonschema_rs.validator_for
        if not isinstance(document, dict) or "$schema" not in document:
            compile_as = jsonschema_rs.Draft7Validator  # what Confluent's registry takes it for
        keywords = None if rewritten is _as_it_is else {COUNT: self._steps.keyword()}
        try:
            return compile_as(
                rewritten(document),
                retriever=look_up,
                keywords=keywords,
                pattern_options=jsonschema_rs.RegexOptions(size_limit=PATTERN_BYTES_MAX),
                base_uri=BASE_URI,
            )
        except jsonschema_rs.ValidationError as error:
            place = "/".join(map(str, error.instance_path))
            raise InvalidSchema(f"not a JSON schema: {error.message}{f' at {place}' if place else ''}") from None
        except (jsonschema_rs.ReferencingError, ValueError, RecursionError) as error:
            raise InvalidSchema(f"not a JSON schema: {error}") from None

    @property
    def normalized(self) -> str:
        return compact(msgspec.json.decode(self.text), is_sorted=True)

    @property
    def serialized(self) -> str:
        return self.text

    def cannot_read(self, older: "JsonSchema") -> list[str]:
        return incompatibilities(older.documents, self.documents)

    def fault(
        self,
        payload: bytes,
        is_framed: bool,  # noqa: ARG002  it says nothing more
        allowance: Allowance | None = None,
    ) -> str | None:
        try:
            value = msgspec.json.decode(payload)
        except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
            return f"not JSON: {error}"
        try:
            if self._is_costly:
                return self._counted_fault(value, allowance)
            if self._is_valid(payload, value):
                return None
            return "; ".join(self._reasons(payload, value))
        except (ValueError, RecursionError) as error:
            return f"cannot be checked: {error}"

    def _is_valid(self, payload: bytes, value: Any) -> bool:
        if len(payload) <= self.turn_bytes_max:
            return bool(self._validator.is_valid(value))
        if self._yielding is None:
            self._yielding = self._compile(msgspec.json.decode(self.text), _counted_everywhere)
        self._steps.left = UNCOUNTED
        return bool(self._yielding.is_valid(value))

    def _reasons(self, payload: bytes, value: Any) -> list[str]:
        size, schema_bytes = len(payload), len(self.text)
        if size <= ALL_FAULTS_BYTES and size * schema_bytes <= ALL_FAULTS_PRODUCT:
            return [_told(each) for each in islice(self._validator.iter_errors(value), FAULTS_MAX)]
        if size > REASON_VALUE_BYTES or schema_bytes > REASON_SCHEMA_BYTES:
            return ["the value: is not allowed by its schema; value or schema are too large to say why"]
        try:
            self._validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            return [_told(error)]
        raise AssertionError("a value is valid or it is not")

    def _counted_fault(self, value: Any, allowance: Allowance | None) -> str | None:
        """Which rule is broken is not said: to find that out, all ways would have to be gone."""
        steps = self._steps
        given = steps.left = STEPS_MAX if allowance is None else min(STEPS_MAX, allowance.left)
        is_valid = self._validator.is_valid(value)
        if allowance is not None:
            allowance.left -= given - max(steps.left, 0)
        if steps.left < 0:
            return f"cannot be checked: it would take more than {given} steps, the schema is too complex"
        return None if is_valid else "the value: is not allowed by a schema too complex to say why"


class _Steps(local):
    """Counts down while a value is checked. Once none are left every reference leads to a no, which ends the check.
    Large values are checked in another thread than small ones: each thread counts for itself."""

    def __init__(self) -> None:
        self.left = STEPS_MAX

    def keyword(self) -> type:
        steps = self

        class Counted:
            def __init__(self, parent: Any, value: Any, path: Any) -> None:  # noqa: ARG002
                self._steps = value

            def validate(self, _: Any) -> None:
                steps.left -= self._steps
                if steps.left < 0:
                    raise ValueError("no steps are left")

        return Counted


def _as_it_is(document: Any) -> Any:
    return document


def _counted_everywhere(document: Any) -> Any:
    return counted(document, is_everywhere=True)


def _told(error: Any) -> str:
    return f"{_place(error.instance_path)}: {_shown(error.message)}"


def _place(path: list[str | int]) -> str:
    place = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in path)
    return f"field {place.lstrip('.')}" if path else "the value"


def _shown(message: str) -> str:
    return message if len(message) <= SHOWN_CHARS_MAX else message[:SHOWN_CHARS_MAX] + "..."
