"""The schema registry: subjects with versions, each version a schema with an id. An id is given once and never again,
not even after its schema was deleted for good: readers may still hold messages that name it.

Whether a schema is one, and whether it is compatible, is found out before a command comes here: that needs libraries.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from heapq import nsmallest

import msgspec

from goqueue.machines.find_names import FindNames, FoundNames, page_of
from goqueue.machines.machine import Fact, Outcome
from goqueue.machines.schemas.facts import (
    DeleteSubject,
    DeleteVersion,
    IdsUsed,
    LevelForgotten,
    LevelStored,
    ModeForgotten,
    ModeStored,
    NewSchema,
    Register,
    Result,
    SchemaForgotten,
    SchemaStored,
    SetLevel,
    SetMode,
    VersionForgotten,
    VersionStored,
)
from goqueue.model import registry_words as words
from goqueue.model.schemas import EVERYWHERE, Level, Mode, Reference, RegistryCode, SchemaKind
from goqueue.model.tenancy import MARK, Tenant, TenantLimit, tenant_said

SCHEMAS_MAX = 100_000
ID_MAX = (1 << 31) - 1
"""Four bytes before a message, read as a signed number."""

Identity = tuple[SchemaKind, bytes, tuple[Reference, ...], bytes]
Decided = tuple[list[Fact], Result]


class SchemaMachine:
    def __init__(self, tenants: Callable[[], Mapping[str, Tenant]] = dict) -> None:
        self._tenants = tenants
        self._versions: Counter[str] = Counter()
        """Of all subjects, by tenant."""
        self._schemas: dict[int, NewSchema] = {}
        self._ids: dict[Identity, list[int]] = {}
        """One for each tenant that has it."""
        self._subjects: dict[str, dict[int, VersionStored]] = {}
        """Invariant: versions rise within a subject, and every one names a schema that is there."""
        self._uses: dict[int, set[tuple[str, int]]] = {}
        """By id: the versions that name it."""
        self._levels: dict[str, Level] = {}
        self._modes: dict[str, Mode] = {}
        self._next_id = 1

    # -- questions

    def subjects(self, with_deleted: bool = False) -> list[str]:
        return [name for name in sorted(self._subjects) if self.versions(name, with_deleted)]

    def versions(self, subject: str, with_deleted: bool = False) -> list[VersionStored]:
        """In order."""
        found = self._subjects.get(subject, {})
        return [found[number] for number in sorted(found) if with_deleted or not found[number].is_deleted]

    def version(self, subject: str, version: int) -> VersionStored | None:
        return self._subjects.get(subject, {}).get(version)

    def latest(self, subject: str) -> VersionStored | None:
        versions = self.versions(subject)
        return versions[-1] if versions else None

    def schema(self, schema_id: int) -> NewSchema | None:
        return self._schemas.get(schema_id)

    def schema_ids(self) -> list[int]:
        return sorted(self._schemas)

    def id_of(self, schema: NewSchema, subject: str) -> int | None:
        """Under which the tenant of a subject has it: that another one has it, too, it does not learn."""
        tenant = tenant_said(subject)
        for schema_id in self._ids.get(_identity(schema), ()):
            if any(tenant_said(name) == tenant for name, _ in self._uses.get(schema_id, ())):
                return schema_id
        return None

    def uses(self, schema_id: int, with_deleted: bool = False) -> list[VersionStored]:
        """The versions that have this schema."""
        found = [self._subjects[subject][version] for subject, version in sorted(self._uses.get(schema_id, ()))]
        return [each for each in found if with_deleted or not each.is_deleted]

    def referenced_by(self, subject: str, version: int, with_deleted: bool = False) -> list[int]:
        """Ids of schemas that refer to this version."""
        return [
            schema_id
            for schema_id, schema in sorted(self._schemas.items())
            if any(each.subject == subject and each.version == version for each in schema.references)
            and self.uses(schema_id, with_deleted)
        ]

    def level(self, subject: str, with_global: bool = True) -> Level | None:
        own = self._levels.get(subject)
        if own is not None or not with_global:
            return own
        return self._levels.get(_everywhere(subject)) or self._levels.get(EVERYWHERE, Level.BACKWARD)

    def mode(self, subject: str, with_global: bool = True) -> Mode | None:
        own = self._modes.get(subject)
        if own is not None or not with_global:
            return own
        return self._modes.get(_everywhere(subject)) or self._modes.get(EVERYWHERE, Mode.READWRITE)

    # -- decisions

    def decide(self, command: object, ticket: int, now_ms: int) -> Outcome:  # noqa: ARG002  a machine's signature
        if isinstance(command, FindNames):
            found, names = self._find_names(command)
            return Outcome(found, [(ticket, names)])
        decisions: dict[type, Callable[..., Decided | Result]] = {
            Register: self._register,
            DeleteVersion: self._delete_version,
            DeleteSubject: self._delete_subject,
            SetLevel: self._set_level,
            SetMode: self._set_mode,
        }
        decide = decisions.get(type(command))
        if decide is None:
            raise TypeError(f"no command of the schema registry: {command!r}")
        decided = decide(command)
        facts, result = ([], decided) if isinstance(decided, Result) else decided
        return Outcome(facts, [(ticket, result)])

    def _register(self, command: Register) -> Decided | Result:
        subject, schema = command.subject, command.schema
        mode = self.mode(subject)
        if mode in (Mode.READONLY, Mode.READONLY_OVERRIDE):
            return Result(RegistryCode.OPERATION_NOT_PERMITTED, words.in_mode(subject, mode))
        if (command.schema_id or command.version) and mode is not Mode.IMPORT:
            message = f"subject {subject!r} is not in import mode: ids and versions are given by the registry"
            return Result(RegistryCode.OPERATION_NOT_PERMITTED, message)
        known_id = self.id_of(schema, subject)
        for each in self.versions(subject):
            if each.schema_id == known_id and command.version in (0, each.version):
                return Result(schema_id=each.schema_id, version=each.version)
        refusal = self._check_import(command, known_id) or self._check_share(subject)
        if refusal is not None:
            return refusal
        facts: list[Fact] = []
        schema_id = command.schema_id or known_id or self._next_id
        if schema_id not in self._schemas:
            facts += [IdsUsed(max(self._next_id, schema_id + 1)), SchemaStored(schema_id, schema)]
        version = command.version or max(self._subjects.get(subject, {}), default=0) + 1
        facts.append(VersionStored(subject, version, schema_id))
        return facts, Result(schema_id=schema_id, version=version)

    def _check_share(self, subject: str) -> Result | None:
        tenant = self._tenants().get(tenant_said(subject))
        if tenant is None or self._versions[tenant.tenant_id] < tenant.most(TenantLimit.SCHEMAS, SCHEMAS_MAX):
            return None
        return Result(RegistryCode.OPERATION_NOT_PERMITTED, tenant.full_words(TenantLimit.SCHEMAS, SCHEMAS_MAX))

    def _check_import(self, command: Register, known_id: int | None) -> Result | None:
        wanted = command.schema_id
        if wanted and (known_id or wanted) != wanted:
            return Result(RegistryCode.ID_DOES_NOT_MATCH, words.id_does_not_match(known_id, wanted))
        if wanted and wanted != known_id and (wanted in self._schemas or wanted < self._next_id):
            return Result(RegistryCode.OPERATION_NOT_PERMITTED, f"the id {wanted} was given to another schema")
        if not wanted and known_id is None and (len(self._schemas) >= SCHEMAS_MAX or self._next_id > ID_MAX):
            return Result(RegistryCode.OPERATION_NOT_PERMITTED, f"there are {SCHEMAS_MAX} schemas, which is the limit")
        if command.version and self.version(command.subject, command.version) is not None:
            message = f"subject {command.subject!r} has a version {command.version} already"
            return Result(RegistryCode.OPERATION_NOT_PERMITTED, message)
        return None

    def _delete_version(self, command: DeleteVersion) -> Decided | Result:
        subject, version = command.subject, command.version
        refusal = self._check_delete(subject)
        if refusal is not None:
            return refusal
        found = self.version(subject, version)
        if found is None:
            return Result(RegistryCode.VERSION_NOT_FOUND, words.version_not_found(version))
        if command.is_permanent and not found.is_deleted:
            return Result(RegistryCode.VERSION_NOT_SOFT_DELETED, words.version_not_deleted(subject, version))
        if not command.is_permanent and found.is_deleted:
            return Result(RegistryCode.VERSION_SOFT_DELETED, words.version_deleted(subject, version))
        refusal = self._check_references([found], command.is_permanent)
        if refusal is not None:
            return refusal
        return self._delete([found], command.is_permanent), Result(version=version, versions=(version,))

    def _delete_subject(self, command: DeleteSubject) -> Decided | Result:
        subject = command.subject
        refusal = self._check_delete(subject)
        if refusal is not None:
            return refusal
        alive, found = self.versions(subject), self.versions(subject, True)
        if command.is_permanent and alive:
            return Result(RegistryCode.SUBJECT_NOT_SOFT_DELETED, words.subject_not_deleted(subject))
        if not command.is_permanent and not alive:
            return Result(RegistryCode.SUBJECT_SOFT_DELETED, words.subject_deleted(subject))
        chosen = found if command.is_permanent else alive
        refusal = self._check_references(chosen, command.is_permanent)
        if refusal is not None:
            return refusal
        facts = self._delete(chosen, command.is_permanent)
        if subject in self._levels:
            facts.append(LevelForgotten(subject))
        if subject in self._modes:
            facts.append(ModeForgotten(subject))
        return facts, Result(versions=tuple(each.version for each in chosen))

    def _check_delete(self, subject: str) -> Result | None:
        mode = self.mode(subject)
        if mode in (Mode.READONLY, Mode.READONLY_OVERRIDE):
            return Result(RegistryCode.OPERATION_NOT_PERMITTED, words.in_mode(subject, mode))
        if subject not in self._subjects:
            return Result(RegistryCode.SUBJECT_NOT_FOUND, words.subject_not_found(subject))
        return None

    def _check_references(self, chosen: list[VersionStored], is_permanent: bool) -> Result | None:
        """What others refer to must stay; what refers to a version that goes with it does not count."""
        going = {(each.subject, each.version) for each in chosen}
        for each in chosen:
            for schema_id in self.referenced_by(each.subject, each.version, is_permanent):
                users = {(use.subject, use.version) for use in self.uses(schema_id, is_permanent)}
                if users - going:
                    message = words.referenced(each.subject, each.version, schema_id)
                    return Result(RegistryCode.REFERENCE_EXISTS, message)
        return None

    def _delete(self, chosen: list[VersionStored], is_permanent: bool) -> list[Fact]:
        if not is_permanent:
            return [msgspec.structs.replace(each, is_deleted=True) for each in chosen]
        going = {(each.subject, each.version) for each in chosen}
        facts: list[Fact] = [VersionForgotten(*each) for each in sorted(going)]
        unused = (number for number in {each.schema_id for each in chosen} if self._uses[number] <= going)
        facts.extend(SchemaForgotten(schema_id) for schema_id in sorted(unused))
        return facts

    def _find_names(self, command: FindNames) -> tuple[list[Fact], FoundNames]:
        """Subjects, also those that are deleted softly or have nothing but a level or a mode. Neither their mode nor a
        reference keeps them: those who refer to them go too."""
        names = page_of(command, self._page)
        going = names if command.forgets else []
        facts = self._delete([each for name in going for each in self.versions(name, True)], is_permanent=True)
        facts += [LevelForgotten(name) for name in going if name in self._levels]
        facts += [ModeForgotten(name) for name in going if name in self._modes]
        return facts, FoundNames(tuple(names))

    def _page(self, after: str, count: int) -> list[str]:
        known = {*self._subjects, *self._levels, *self._modes}
        return nsmallest(count, (name for name in known if name > after))

    def _set_level(self, command: SetLevel) -> Decided | Result:
        if command.level is not None:
            return [LevelStored(command.subject, command.level)], Result()
        if command.subject not in self._levels:
            message = words.no_own_level(command.subject)
            is_all = command.subject == _everywhere(command.subject)
            return Result() if is_all else Result(RegistryCode.SUBJECT_COMPATIBILITY_NOT_CONFIGURED, message)
        return [LevelForgotten(command.subject)], Result()

    def _set_mode(self, command: SetMode) -> Decided | Result:
        subject, mode = command.subject, command.mode
        is_all = subject == _everywhere(subject)
        if mode is Mode.IMPORT and not command.is_forced and self._has_any(subject, is_all=is_all):
            message = "there are schemas already; force=true imports beside them"
            return Result(RegistryCode.OPERATION_NOT_PERMITTED, message)
        if mode is not None:
            return [ModeStored(subject, mode)], Result()
        if subject not in self._modes:
            message = words.no_own_mode(subject)
            return Result() if is_all else Result(RegistryCode.SUBJECT_MODE_NOT_CONFIGURED, message)
        return [ModeForgotten(subject)], Result()

    def _has_any(self, subject: str, *, is_all: bool) -> bool:
        names = [name for name in self._subjects if name.startswith(subject)] if is_all else [subject]
        return any(map(self.versions, names))

    # -- state

    def apply(self, fact: object) -> None:
        match fact:
            case SchemaStored():
                self.forget(fact.key())
                self._schemas[fact.schema_id] = fact.schema
                self._ids.setdefault(_identity(fact.schema), []).append(fact.schema_id)
                self._next_id = max(self._next_id, fact.schema_id + 1)
            case IdsUsed():
                self._next_id = max(self._next_id, fact.next_id)
            case VersionStored():
                self._forget_version(fact.subject, fact.version)
                self._subjects.setdefault(fact.subject, {})[fact.version] = fact
                self._versions[tenant_said(fact.subject)] += 1
                self._uses.setdefault(fact.schema_id, set()).add((fact.subject, fact.version))
            case LevelStored():
                self._levels[fact.subject] = fact.level
            case ModeStored():
                self._modes[fact.subject] = fact.mode
            case Fact(is_tombstone=True):
                self.forget(fact.key())

    def forget(self, key: bytes) -> None:
        letter, rest = key[:1], key[1:]
        if letter == b"s":
            schema = self._schemas.pop(int(rest), None)
            if schema is not None:
                ids = self._ids[_identity(schema)]
                ids.remove(int(rest))
                if not ids:
                    del self._ids[_identity(schema)]
        elif letter == b"v":
            number, _, name = rest.partition(b"/")
            self._forget_version(name.decode(), int(number))
        elif letter == b"c":
            self._levels.pop(rest.decode(), None)
        elif letter == b"m":
            self._modes.pop(rest.decode(), None)

    def _forget_version(self, subject: str, version: int) -> None:
        versions = self._subjects.get(subject, {})
        found = versions.pop(version, None)
        if found is None:
            return
        self._versions[tenant_said(subject)] -= 1
        if not versions:
            del self._subjects[subject]
        uses = self._uses[found.schema_id]
        uses.discard((subject, version))
        if not uses:
            del self._uses[found.schema_id]

    def facts(self) -> Iterator[Fact]:
        yield IdsUsed(self._next_id)
        yield from (SchemaStored(*each) for each in self._schemas.items())
        for versions in self._subjects.values():
            yield from versions.values()
        yield from (LevelStored(*each) for each in self._levels.items())
        yield from (ModeStored(*each) for each in self._modes.items())

    def next_deadline_ms(self) -> int | None:
        return None


def _everywhere(subject: str) -> str:
    """What holds for all subjects of the same tenant that say nothing."""
    tenant, mark, _ = subject.partition(MARK)
    return tenant + mark if mark else EVERYWHERE


def _identity(schema: NewSchema) -> Identity:
    return schema.kind, schema.fingerprint, schema.references, schema.extras
