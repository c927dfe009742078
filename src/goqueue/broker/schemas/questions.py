"""What the registry knows, as doors ask it. Their answers leave when the ledger of schemas is durable: see
`broker.durable`. A coordinator that is not active refuses each of these.
"""

from typing import Protocol

from goqueue.machines.schemas.facts import VersionStored
from goqueue.machines.schemas.machine import SchemaMachine
from goqueue.model.schemas import Level, Mode
from goqueue.runtime.coordinators import Submitting


class SchemaSource(Submitting, Protocol):
    """Who knows the schemas: their coordinator, or in a cluster whoever stands for it here."""

    @property
    def is_active(self) -> bool: ...

    def peek(self) -> SchemaMachine: ...


class SchemaQuestions:
    def __init__(self, coordinator: SchemaSource) -> None:
        self._coordinator = coordinator

    @property
    def is_active(self) -> bool:
        return self._coordinator.is_active

    def peek(self) -> SchemaMachine:
        """For the broker's own questions; it must not be kept."""
        return self._coordinator.peek()

    def subjects(self, with_deleted: bool = False) -> list[str]:
        return self.peek().subjects(with_deleted)

    def versions_of(self, subject: str, with_deleted: bool = False) -> list[VersionStored]:
        """In order; none, if there is no such subject."""
        return self.peek().versions(subject, with_deleted)

    def schema_count(self) -> int:
        return len(self.peek().schema_ids())

    def uses(self, schema_id: int, with_deleted: bool = False) -> list[VersionStored]:
        """The versions that have this schema."""
        return self.peek().uses(schema_id, with_deleted)

    def referenced_by(self, subject: str, version: int, with_deleted: bool = False) -> list[int]:
        """Ids of schemas that refer to this version."""
        return self.peek().referenced_by(subject, version, with_deleted)

    def level(self, subject: str, with_global: bool = True) -> Level | None:
        return self.peek().level(subject, with_global)

    def mode(self, subject: str, with_global: bool = True) -> Mode | None:
        return self.peek().mode(subject, with_global)
