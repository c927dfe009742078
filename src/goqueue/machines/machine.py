"""What all machines have in common: commands are decided into facts, facts are stored, and applying them is all that
changes state. So a machine is rebuilt after a restart by applying what was stored, whatever code decided it back
then.
"""

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, Protocol

import msgspec


class Fact(msgspec.Struct, frozen=True, tag=True):
    """Something that was decided."""

    durable: ClassVar[bool] = True
    """False: it is applied and never stored, because a restart may forget it."""
    is_tombstone: ClassVar[bool] = False
    """True: it is stored as its key alone and comes back, if at all, through `Machine.forget`."""

    def key(self) -> bytes:
        """Its place in the ledger: a later fact with the same key replaces it."""
        raise TypeError(f"{type(self).__name__} is never stored")


class Tick(msgspec.Struct, frozen=True):
    """The command that makes deadlines pass."""


class Outcome(NamedTuple):
    facts: list[Fact]
    replies: list[tuple[int, Any]]
    """(ticket, reply): to commands decided now or earlier, to be given once the facts are durable."""


class Machine(Protocol):
    def decide(self, command: Any, ticket: int, now_ms: int) -> Outcome:
        """Reads only. A command that must wait gets no reply in its own outcome."""

    def apply(self, fact: Any) -> None:
        """The only thing that changes state; facts come in the order they were decided, now or at replay."""

    def forget(self, key: bytes) -> None:
        """Replay of a tombstone."""

    def facts(self) -> Iterator[Fact]:
        """Durable facts that rebuild this machine from an empty one: a snapshot."""

    def next_deadline_ms(self) -> int | None:
        """When to decide a Tick, if at all."""
