"""JSON Schema, drafts 4 to 2020-12, by `jsonschema-rs`: patterns are matched in linear time, and nothing is ever
fetched; what a schema refers to is in the schema itself or among its references.
"""

from threading import local
from typing import Any

import jsonschema_rs
import msgspec

from goqueue.broker.schemas.formats.json_cost import COUNT, counted, is_costly
from goqueue.broker.schemas.formats.json_evolution import Documents, incompatibilities
from goqueue.broker.schemas.formats.parsed import Allowance, Dependencies, compact, decode_json, digest
from goqueue.model.schemas import InvalidSchema

PATTERN_BYTES_MAX = 1024 * 1024
"""What one pattern may take when it is compiled."""
BASE_URI = "json-schema:///"
"""What names without a scheme are relative to."""
STEPS_MAX = 20_000
"""References that are followed to check one value, where they are counted: ten milliseconds."""
FAULTS_MAX = 3
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
        self._steps = _Steps() if is_costly(self.documents) else None
        """Counted where it may take many."""
        self._validator = self._compile(document)

    def _compile(self, document: Any) -> Any:
        def look_up(uri: str) -> Any:
            for name, schema in self._known.items():
                if uri == name or uri.endswith(f"/{name}"):
                    return schema if self._steps is None else counted(schema)
            raise ValueError(f"{uri} is none of the references of this schema")

        compile_as: Any = jsonschema_rs.validator_for
        if not isinstance(document, dict) or "$schema" not in document:
            compile_as = jsonschema_rs.Draft7Validator  # what Confluent's registry takes it for
        keywords = None if self._steps is None else {COUNT: self._steps.keyword()}
        try:
            return compile_as(
                document if self._steps is None else counted(document),
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
            if self._steps is not None:
                return self._counted_fault(self._steps, value, allowance)
            if self._validator.is_valid(value):
                return None
            found = []
            for each in self._validator.iter_errors(value):
                found.append(f"{_place(each.instance_path)}: {_shown(each.message)}")
                if len(found) == FAULTS_MAX:
                    break
        except (ValueError, RecursionError) as error:
            return f"cannot be checked: {error}"
        return "; ".join(found)

    def _counted_fault(self, steps: "_Steps", value: Any, allowance: Allowance | None) -> str | None:
        """Which rule is broken is not said: to find that out, all ways would have to be gone."""
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
            def __init__(self, parent: Any, value: Any, path: Any) -> None: ...

            def validate(self, _: Any) -> None:
                steps.left -= 1
                if steps.left < 0:
                    raise ValueError("no steps are left")

        return Counted


def _place(path: list[str | int]) -> str:
    place = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in path)
    return f"field {place.lstrip('.')}" if path else "the value"


def _shown(message: str) -> str:
    return message if len(message) <= SHOWN_CHARS_MAX else message[:SHOWN_CHARS_MAX] + "..."
