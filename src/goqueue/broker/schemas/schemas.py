"""The schema registry as doors ask it: what a schema is, whether it may follow the ones before it, and where it is.

Schemas are understood and compared aside (`prepare`). What counts is what is found here, in the same turn in which the
machine decides: nothing can come between.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from goqueue.broker.schemas.formats.parsed import SCHEMA_BYTES_MAX, Dependency, Parsed, digest
from goqueue.broker.schemas.questions import SchemaQuestions, SchemaSource
from goqueue.broker.schemas.study import Failed, Pair, Study, Text
from goqueue.machines.schemas.facts import (
    DeleteSubject,
    DeleteVersion,
    NewSchema,
    Register,
    Result,
    SetLevel,
    SetMode,
    VersionStored,
)
from goqueue.model import registry_words as words
from goqueue.model.again import Again
from goqueue.model.errors import GoQueueError
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
from goqueue.runtime.ahead import OnReply
from goqueue.runtime.aside import Aside, at_once

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


class Schemas(SchemaQuestions):
    def __init__(self, coordinator: SchemaSource) -> None:
        super().__init__(coordinator)
        self._study = Study(at_once)
        self._parsed: dict[int, Parsed] = {}
        """Invariant: the one used last comes last."""

    def work_aside(self, aside: Aside) -> None:
        """From now on; before that it is done at once."""
        self._study = Study(aside)

    @property
    def parsed_count(self) -> int:
        return len(self._parsed)

    def submit(
        self,
        command: DeleteVersion | DeleteSubject | SetLevel | SetMode,
        on_reply: Callable[[Result | GoQueueError], None],
    ) -> None:
        self._coordinator.submit(command, on_reply)

    # -- registering and looking up

    def prepare(
        self,
        subject: str,
        given: Given,
        on_ready: Callable[[None], None],
        *,
        version: str | None = None,
        compares: bool = True,
    ) -> None:
        """Do aside what takes long of the call that comes next; whatever is wrong, that call tells."""
        pairs: list[Pair] = []
        try:
            self._check_size(given.text)
            text = self._text(given.kind, given.text, tuple(self._resolved(each) for each in given.references))
            level = self.peek().level(subject) or Level.NONE
            before = self._before(subject, level) if version is None else [self.version(subject, version)]
            for each in before if compares and level is not Level.NONE else ():
                older = self._text_of(each.schema_id)
                if older.kind is given.kind:
                    pairs += [(text, older)] if level.is_backward else []
                    pairs += [(older, text)] if level.is_forward else []
        except (RegistryRefused, InvalidSchema):
            on_ready(None)
            return
        self._study.prepare([text], pairs, on_ready)

    def register(
        self,
        subject: str,
        given: Given,
        on_reply: OnReply[Result],
        *,
        normalize: bool = False,
        place: tuple[int, int] = (0, 0),
    ) -> None:
        """`place`: id and version, where schemas are imported. Replies with a Result; raises if it may not be."""
        check_subject(subject)
        text, schema = self._understand(given, normalize)
        known = self.peek().id_of(schema, subject)
        is_new = all(each.schema_id != known for each in self.peek().versions(subject))
        if is_new and self.peek().mode(subject) is not Mode.IMPORT:
            level = self.peek().level(subject) or Level.NONE
            problems = self._problems(text, self._before(subject, level), level)
            if problems:
                message = words.incompatible(subject, level, "; ".join(problems))
                raise RegistryRefused(RegistryCode.INCOMPATIBLE_SCHEMA, message)
        self._coordinator.submit(Register(subject, schema, *place), on_reply)

    def look_up(self, subject: str, given: Given, *, normalize: bool, with_deleted: bool) -> VersionStored:
        """Under which version a subject has this schema."""
        self.versions(subject, with_deleted)
        _, schema = self._understand(given, normalize)
        known = self.peek().id_of(schema, subject)
        for each in reversed(self.peek().versions(subject, with_deleted)):
            if each.schema_id == known:
                return each
        raise RegistryRefused(RegistryCode.SCHEMA_NOT_FOUND, words.SCHEMA_NOT_FOUND)

    def problems(self, subject: str, given: Given, version: str | None, *, normalize: bool = False) -> list[str]:
        """Why it could not follow `version`; None: all that its subject's level asks for."""
        level = self.peek().level(subject) or Level.NONE
        text, _ = self._understand(given, normalize)
        before = self._before(subject, level) if version is None else [self.version(subject, version)]
        return self._problems(text, before, level)

    # -- what there is

    def versions(self, subject: str, with_deleted: bool = False) -> list[VersionStored]:
        found = self.peek().versions(subject, with_deleted)
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
        found = self.peek().schema(schema_id)
        if found is None:
            raise RegistryRefused(RegistryCode.SCHEMA_NOT_FOUND, words.schema_not_found(schema_id))
        return found

    def parsed(self, schema_id: int) -> Parsed | None:
        """Ready to check values; None: there is none such."""
        found = self._parsed.pop(schema_id, None)
        if found is None:
            if self.peek().schema(schema_id) is None:
                return None
            found = self._study.parse(self._text_of(schema_id))
            if len(self._parsed) >= PARSED_MAX:
                del self._parsed[next(iter(self._parsed))]
        self._parsed[schema_id] = found
        return found

    def unread(self, schema_id: int) -> Text | None:
        """Its text, if `parsed` would have to read it first, which takes long. InvalidSchema: it refers to too many."""
        if schema_id in self._parsed or self.peek().schema(schema_id) is None:
            return None
        text = self._text_of(schema_id)
        return None if self._study.has_read(text) else text

    def learn(self, text: Text, found: Parsed | Failed) -> None:
        """It was read aside."""
        self._study.learn(text, found)

    # -- understanding

    def _understand(self, given: Given, normalize: bool) -> tuple[Text, NewSchema]:
        self._check_size(given.text)
        references = tuple(self._resolved(each) for each in given.references)
        try:
            unread = self._text(given.kind, given.text, references)
            parsed = self._study.parse(unread)
            text = parsed.normalized if normalize else parsed.text
        except InvalidSchema as error:
            raise RegistryRefused(RegistryCode.INVALID_SCHEMA, words.invalid_schema(str(error))) from None
        fingerprint = digest(text) if normalize else parsed.fingerprint
        return unread, NewSchema(given.kind, text, fingerprint, references, given.extras)

    def _check_size(self, text: str) -> None:
        size = len(text.encode())
        if not text.strip() or size > SCHEMA_BYTES_MAX:
            message = f"a schema has 1 to {SCHEMA_BYTES_MAX} bytes, not {size}"
            raise RegistryRefused(RegistryCode.INVALID_SCHEMA, words.invalid_schema(message))

    def _resolved(self, reference: Reference) -> Reference:
        """With the number of its version, whatever was said."""
        try:
            found = self.version(reference.subject, str(reference.version), with_deleted=reference.version != LATEST)
        except RegistryRefused as error:
            message = f"the reference {reference.name!r} leads nowhere: {error}"
            raise RegistryRefused(RegistryCode.INVALID_SCHEMA, words.invalid_schema(message)) from None
        return Reference(reference.name, reference.subject, found.version)

    def _text(self, kind: SchemaKind, text: str, references: Sequence[Reference]) -> Text:
        return Text(kind, text, tuple(self._dependencies(kind, references)))

    def _text_of(self, schema_id: int) -> Text:
        stored = self.schema(schema_id)
        return self._text(stored.kind, stored.text, stored.references)

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
                stored = self.peek().version(each.subject, each.version)
                schema = None if stored is None else self.peek().schema(stored.schema_id)
                if schema is None or schema.kind is not kind:
                    raise InvalidSchema(f"the reference {each.name!r} leads to no schema of the same format")
                again(schema.references)
                found.setdefault(each.name, Dependency(each.name, schema.text))

        Again(add)(references)
        return list(found.values())

    # -- comparing

    def _before(self, subject: str, level: Level) -> list[VersionStored]:
        versions = self.peek().versions(subject)
        return versions if level.is_transitive else versions[-1:]

    def _problems(self, text: Text, before: list[VersionStored], level: Level) -> list[str]:
        if level is Level.NONE:
            return []
        found = []
        for each in reversed(before):
            kind = self.schema(each.schema_id).kind
            if kind is not text.kind:
                found.append(f"version {each.version} is {kind}, this is {text.kind}")
                continue
            try:
                older = self._text_of(each.schema_id)
                reasons = self._study.cannot_read(text, older) if level.is_backward else []
                older_readers = self._study.cannot_read(older, text) if level.is_forward else []
            except InvalidSchema as error:
                message = f"it cannot be compared with version {each.version}: {error}"
                raise RegistryRefused(RegistryCode.INVALID_SCHEMA, words.invalid_schema(message)) from None
            reasons += [f"{why} (for older readers)" for why in older_readers]
            found += [f"version {each.version}: {why}" for why in reasons]
        return found
