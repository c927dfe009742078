"""The schema registry as doors ask it: what a schema is, whether it may follow the ones before it, and where it is.

Schemas are understood and compared here, in the same turn in which the machine decides: nothing can come between.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from goqueue.broker.formats.parsed import SCHEMA_BYTES_MAX, Dependency, Parsed, digest
from goqueue.machines.schema_facts import (
    DeleteSubject,
    DeleteVersion,
    NewSchema,
    Register,
    SetLevel,
    SetMode,
    VersionStored,
)
from goqueue.machines.schemas import SchemaMachine
from goqueue.model import registry_words as words
from goqueue.model.again import Again
from goqueue.model.schemas import (
    InvalidSchema,
    Level,
    Mode,
    Reference,
    RegistryCode,
    RegistryRefused,
    SchemaKind,
    check_subject,
)
from goqueue.runtime.coordinator import Coordinator, OnReply

__all__ = ["DeleteSubject", "DeleteVersion", "Given", "Schemas", "SetLevel", "SetMode", "VersionStored"]

PARSED_MAX = 500
"""Schemas that are kept ready to check values."""
REFERENCES_MAX = 100
LATEST = -1


class Given(NamedTuple):
    """A schema as somebody sent it."""

    text: str
    kind: SchemaKind = SchemaKind.AVRO
    references: Sequence[Reference] = ()
    extras: bytes = b""


class Schemas:
    def __init__(self, coordinator: Coordinator) -> None:
        machine = coordinator.machine
        assert isinstance(machine, SchemaMachine)
        self._coordinator = coordinator
        self._machine = machine
        self._parsed: dict[int, Parsed] = {}
        """Invariant: the one used last comes last."""

    @property
    def machine(self) -> SchemaMachine:
        """For questions only."""
        return self._machine

    @property
    def parsed_count(self) -> int:
        return len(self._parsed)

    def submit(self, command: DeleteVersion | DeleteSubject | SetLevel | SetMode, on_reply: OnReply) -> None:
        self._coordinator.submit(command, on_reply)

    # -- registering and looking up

    def register(
        self, subject: str, given: Given, on_reply: OnReply, *, normalize: bool = False, place: tuple[int, int] = (0, 0)
    ) -> None:
        """`place`: id and version, where schemas are imported. Replies with a Result; raises if it may not be."""
        check_subject(subject)
        parsed, schema = self._understand(given, normalize)
        known = self._machine.id_of(schema)
        is_new = all(each.schema_id != known for each in self._machine.versions(subject))
        if is_new and self._machine.mode(subject) is not Mode.IMPORT:
            level = self._machine.level(subject) or Level.NONE
            problems = self._problems(parsed, schema.kind, self._before(subject, level), level)
            if problems:
                message = words.incompatible(subject, level, "; ".join(problems))
                raise RegistryRefused(RegistryCode.INCOMPATIBLE_SCHEMA, message)
        self._coordinator.submit(Register(subject, schema, *place), on_reply)

    def look_up(self, subject: str, given: Given, *, normalize: bool, with_deleted: bool) -> VersionStored:
        """Under which version a subject has this schema."""
        self.versions(subject, with_deleted)
        _, schema = self._understand(given, normalize)
        known = self._machine.id_of(schema)
        for each in reversed(self._machine.versions(subject, with_deleted)):
            if each.schema_id == known:
                return each
        raise RegistryRefused(RegistryCode.SCHEMA_NOT_FOUND, words.SCHEMA_NOT_FOUND)

    def problems(self, subject: str, given: Given, version: str | None, *, normalize: bool = False) -> list[str]:
        """Why it could not follow `version`; None: all that its subject's level asks for."""
        level = self._machine.level(subject) or Level.NONE
        parsed, schema = self._understand(given, normalize)
        if version is None:
            return self._problems(parsed, schema.kind, self._before(subject, level), level)
        return self._problems(parsed, schema.kind, [self.version(subject, version)], level)

    # -- what there is

    def versions(self, subject: str, with_deleted: bool = False) -> list[VersionStored]:
        found = self._machine.versions(subject, with_deleted)
        if not found:
            raise RegistryRefused(RegistryCode.SUBJECT_NOT_FOUND, words.subject_not_found(subject))
        return found

    def version(self, subject: str, version: str, with_deleted: bool = False) -> VersionStored:
        """`latest` and -1 are the newest one."""
        wanted = self.version_number(version)
        found = self.versions(subject, with_deleted)
        if wanted == LATEST:
            return found[-1]
        for each in found:
            if each.version == wanted:
                return each
        raise RegistryRefused(RegistryCode.VERSION_NOT_FOUND, words.version_not_found(version))

    def version_number(self, version: str) -> int:
        if version in ("latest", str(LATEST)):
            return LATEST
        if version.isascii() and version.isdigit() and len(version) < 10 and int(version) > 0:
            return int(version)
        raise RegistryRefused(RegistryCode.INVALID_VERSION, words.invalid_version(version))

    def schema(self, schema_id: int) -> NewSchema:
        found = self._machine.schema(schema_id)
        if found is None:
            raise RegistryRefused(RegistryCode.SCHEMA_NOT_FOUND, words.schema_not_found(schema_id))
        return found

    def parsed(self, schema_id: int) -> Parsed | None:
        """Ready to check values; None: there is none such."""
        found = self._parsed.pop(schema_id, None)
        if found is None:
            schema = self._machine.schema(schema_id)
            if schema is None:
                return None
            found = self._parse(schema.kind, schema.text, schema.references)
            if len(self._parsed) >= PARSED_MAX:
                del self._parsed[next(iter(self._parsed))]
        self._parsed[schema_id] = found
        return found

    # -- understanding

    def _understand(self, given: Given, normalize: bool) -> tuple[Parsed, NewSchema]:
        size = len(given.text.encode())
        if not given.text.strip() or size > SCHEMA_BYTES_MAX:
            message = f"a schema has 1 to {SCHEMA_BYTES_MAX} bytes, not {size}"
            raise RegistryRefused(RegistryCode.INVALID_SCHEMA, words.invalid_schema(message))
        references = tuple(self._resolved(each) for each in given.references)
        try:
            parsed = self._parse(given.kind, given.text, references)
            text = parsed.normalized if normalize else parsed.text
        except InvalidSchema as error:
            raise RegistryRefused(RegistryCode.INVALID_SCHEMA, words.invalid_schema(str(error))) from None
        fingerprint = digest(text) if normalize else parsed.fingerprint
        return parsed, NewSchema(given.kind, text, fingerprint, references, given.extras)

    def _resolved(self, reference: Reference) -> Reference:
        """With the number of its version, whatever was said."""
        try:
            found = self.version(reference.subject, str(reference.version), with_deleted=reference.version != LATEST)
        except RegistryRefused as error:
            message = f"the reference {reference.name!r} leads nowhere: {error}"
            raise RegistryRefused(RegistryCode.INVALID_SCHEMA, words.invalid_schema(message)) from None
        return Reference(reference.name, reference.subject, found.version)

    def _parse(self, kind: SchemaKind, text: str, references: Sequence[Reference]) -> Parsed:
        return _FORMATS[kind](text, self._dependencies(kind, references))

    def _dependencies(self, kind: SchemaKind, references: Sequence[Reference]) -> list[Dependency]:
        """Those that a schema needs, each behind what it needs itself."""
        found: dict[str, Dependency] = {}
        steps = 0

        def add(again: Again, wanted: Sequence[Reference]) -> None:
            nonlocal steps
            for each in wanted:
                steps += 1
                if steps > REFERENCES_MAX:
                    raise InvalidSchema(f"more than {REFERENCES_MAX} references, one behind the other")
                if each.name in found:
                    continue
                stored = self._machine.version(each.subject, each.version)
                schema = None if stored is None else self._machine.schema(stored.schema_id)
                if schema is None or schema.kind is not kind:
                    raise InvalidSchema(f"the reference {each.name!r} leads to no schema of the same format")
                again(schema.references)
                found.setdefault(each.name, Dependency(each.name, schema.text))

        Again(add)(references)
        return list(found.values())

    # -- comparing

    def _before(self, subject: str, level: Level) -> list[VersionStored]:
        versions = self._machine.versions(subject)
        return versions if level.is_transitive else versions[-1:]

    def _problems(self, parsed: Parsed, kind: SchemaKind, before: list[VersionStored], level: Level) -> list[str]:
        if level is Level.NONE:
            return []
        found = []
        for each in reversed(before):
            older = self._machine.schema(each.schema_id)
            assert older is not None
            if older.kind is not kind:
                found.append(f"version {each.version} is {older.kind}, this is {kind}")
                continue
            ready = self.parsed(each.schema_id)
            assert ready is not None
            reasons = parsed.cannot_read(ready) if level.is_backward else []
            reasons += [f"{why} (for older readers)" for why in ready.cannot_read(parsed)] if level.is_forward else []
            found += [f"version {each.version}: {why}" for why in reasons]
        return found


def _avro(text: str, dependencies: Sequence[Dependency]) -> Parsed:
    from goqueue.broker.formats.avro import AvroSchema

    return AvroSchema(text, dependencies)


def _json(text: str, dependencies: Sequence[Dependency]) -> Parsed:
    from goqueue.broker.formats.json_schema import JsonSchema

    return JsonSchema(text, dependencies)


def _protobuf(text: str, dependencies: Sequence[Dependency]) -> Parsed:
    from goqueue.broker.formats.protobuf import ProtobufSchema

    return ProtobufSchema(text, dependencies)


_FORMATS: dict[SchemaKind, Callable[[str, Sequence[Dependency]], Parsed]] = {
    SchemaKind.AVRO: _avro,
    SchemaKind.JSON: _json,
    SchemaKind.PROTOBUF: _protobuf,
}
"""Loaded when first needed: a node without schemas starts as fast as before."""
