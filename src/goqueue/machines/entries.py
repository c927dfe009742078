"""Entries with revisions, as the members of one machine share them: what etcd is to the nodes of a cluster. Changes are
made only if what they were decided from is still so, and all changes of one command have one revision.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple

from goqueue.machines.machine import Command, Fact, Outcome
from goqueue.model.secret import hides

REVISION_KEY = b"\0revision"  # no entry can be called that
FIRST_REVISION = 1


class Expected(NamedTuple):
    key: bytes
    revision: int
    """At which the entry was last changed; 0: there is none."""
    is_equal: bool = True
    """False: it must be another one."""


class Change(NamedTuple):
    key: bytes
    value: bytes | None
    """None: the entry goes."""
    lease: int = 0
    """With which the entry goes; 0: with none."""


class Changed(NamedTuple):
    is_done: bool
    """False: something was not as expected, and nothing was changed."""
    revision: int


class ChangeEntries(Command[Changed], frozen=True):
    """All changes, if all is as expected. No key is in it twice."""

    expected: Sequence[Expected]
    changes: Sequence[Change]


class EndLease(Command[Changed], frozen=True):
    """Its entries go, in one revision."""

    lease: int


class EndLeases(Command[Changed], frozen=True):
    """Of all leases: whoever had them is gone."""


class RevisionReached(Fact, frozen=True, array_like=True, tag="RevisionReached"):
    """Stored with every change: that of an entry which went is in no other fact."""

    revision: int

    def key(self) -> bytes:
        return REVISION_KEY


@hides("value")
class EntryStored(Fact, frozen=True, array_like=True, tag="EntryStored"):
    name: bytes
    value: bytes
    revision: int
    """At which it was last changed."""
    created: int
    lease: int = 0

    def key(self) -> bytes:
        return self.name


class EntryForgotten(Fact, frozen=True):
    is_tombstone: ClassVar[bool] = True
    name: bytes

    def key(self) -> bytes:
        return self.name


ENTRY_FACTS: tuple[type[Fact], ...] = (RevisionReached, EntryStored)


class Entries:
    """Invariant: revisions only rise, over all lives."""

    def __init__(self) -> None:
        self.revision = FIRST_REVISION
        self._entries: dict[bytes, EntryStored] = {}
        self._leased: dict[int, dict[bytes, None]] = {}
        """The names of the entries of each lease that has any."""

    @property
    def entries(self) -> Mapping[bytes, EntryStored]:
        return self._entries

    def below(self, prefix: bytes) -> list[EntryStored]:
        """In the order of their names."""
        return [self._entries[name] for name in sorted(self._entries) if name.startswith(prefix)]

    def decide(self, command: object, ticket: int, now_ms: int) -> Outcome:  # noqa: ARG002  a machine's signature
        match command:
            case ChangeEntries():
                if not all(map(self._is_so, command.expected)):
                    return Outcome([], [(ticket, Changed(False, self.revision))])
                facts = self._changed(command.changes)
            case EndLease(lease):
                facts = self._changed([Change(name, None) for name in sorted(self._leased.get(lease, ()))])
            case EndLeases():
                names = sorted(name for leased in self._leased.values() for name in leased)
                facts = self._changed([Change(name, None) for name in names])
            case _:
                raise TypeError(f"no command of the entries: {command!r}")
        return Outcome(facts, [(ticket, Changed(True, self.revision + bool(facts)))])

    def _is_so(self, expected: Expected) -> bool:
        known = self._entries.get(expected.key)
        return ((0 if known is None else known.revision) == expected.revision) is expected.is_equal

    def _changed(self, changes: Sequence[Change]) -> list[Fact]:
        revision = self.revision + 1
        facts: list[Fact] = []
        for name, value, lease in changes:
            before = self._entries.get(name)
            if value is not None:
                created = revision if before is None else before.created
                facts.append(EntryStored(name, value, revision, created, lease))
            elif before is not None:
                facts.append(EntryForgotten(name))
        return [RevisionReached(revision), *facts] if facts else []

    def apply(self, fact: object) -> None:
        match fact:
            case RevisionReached():
                self.revision = max(self.revision, fact.revision)
            case EntryStored():
                self.forget(fact.name)
                self._entries[fact.name] = fact
                if fact.lease:
                    self._leased.setdefault(fact.lease, {})[fact.name] = None
            case EntryForgotten():
                self.forget(fact.name)

    def forget(self, key: bytes) -> None:
        before = self._entries.pop(key, None)
        if before is not None and before.lease:
            leased = self._leased[before.lease]
            del leased[key]
            if not leased:
                del self._leased[before.lease]

    def facts(self) -> Iterator[Fact]:
        yield RevisionReached(self.revision)
        yield from self._entries.values()

    def next_deadline_ms(self) -> int | None:
        return None
