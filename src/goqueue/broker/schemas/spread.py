"""Schemas in a cluster: every node validates, so every node follows their ledger and asks its own standby. What is
changed goes to the leader.
"""

from collections.abc import Callable
from typing import TypeVar

from goqueue.machines.machine import Command
from goqueue.machines.schemas.machine import SchemaMachine
from goqueue.model.errors import CoordinatorLoading, GoQueueError
from goqueue.runtime.coordinators import Coordinators
from goqueue.runtime.standby import Standby

R = TypeVar("R")
ONLY = 0
"""The number of the one shard."""


class SpreadSchemas:
    """A `SchemaSource`. What a follower tells is committed: it may be a little old."""

    def __init__(
        self, coordinators: Coordinators[int, SchemaMachine], standby: Callable[[], Standby[SchemaMachine] | None]
    ) -> None:
        self._coordinators = coordinators
        self._standby = standby

    @property
    def is_active(self) -> bool:
        return self._found() is not None

    def peek(self) -> SchemaMachine:
        found = self._found()
        if found is None:
            raise CoordinatorLoading("the schemas are being loaded: ask again")
        return found

    def _found(self) -> SchemaMachine | None:
        coordinator = self._coordinators.find(ONLY)
        if coordinator is not None:
            return coordinator.peek() if coordinator.is_active else None
        standby = self._standby()
        return None if standby is None else standby.peek()

    def submit(self, command: Command[R], on_reply: Callable[[R | GoQueueError], None] | None = None) -> None:
        self._coordinators.of(ONLY).submit(command, on_reply)
