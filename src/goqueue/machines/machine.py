"""What all machines have in common: commands are decided into facts, facts are stored, and applying them is all that
changes state. So a machine is rebuilt after a restart by applying what was stored, whatever code decided it back
then.
"""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar, cast, runtime_checkable

import msgspec

from goqueue.records.plain import NumberRecord


class FactMeta(msgspec.StructMeta):
    """Refuses a fact that would be stored under the name of its class: a class may be renamed, what is stored stays."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **config: Any) -> Any:
        made: Any = super().__new__(mcs, name, bases, namespace, **config)
        if bases != (msgspec.Struct,) and made.is_stored() and not isinstance(config.get("tag"), str):
            raise TypeError(
                f'{name} is stored and needs a tag that stays when it is renamed: class {name}(..., tag="{name}").'
                " Then see CONTRIBUTING.md, Stored facts"
            )
        return made


class Fact(msgspec.Struct, metaclass=FactMeta, frozen=True):
    """Something that was decided. One that is stored has a `tag` of its own, by which ledgers of all versions know it;
    its fields are only ever added to, at the end and with a default (`tests/golden`)."""

    durable: ClassVar[bool] = True
    """False: it is applied and never stored, because a restart may forget it."""
    is_tombstone: ClassVar[bool] = False
    """True: it is stored as its key alone and comes back, if at all, through `Machine.forget`."""
    wants_place: ClassVar[bool] = False
    """True: right after it was applied, now or at replay, the machine is told where in the ledger it lies. What is
    large need not be kept in memory then."""

    @classmethod
    def is_stored(cls) -> bool:
        """As a record with a value."""
        return cls.durable and not cls.is_tombstone and cls.key is not Fact.key

    def key(self) -> bytes:
        """Its place in the ledger: a later fact with the same key replaces it."""
        raise TypeError(f"{type(self).__name__} is never stored")

    def stored_keys(self) -> Sequence[bytes]:
        """What it is stored under: one key, unless it is a tombstone of many things at once."""
        return (self.key(),)

    def weight(self) -> int:
        """How many facts it stands for: one of a snapshot may pack thousands."""
        return 1


R_co = TypeVar("R_co", covariant=True)


class Command(msgspec.Struct, Generic[R_co], frozen=True):
    """What a machine is asked to do. Its type says what the reply is: `class Settle(Command[SettleReply])`."""


class Tick(Command[None], frozen=True):
    """The command that makes deadlines pass."""


class ClockSet(Command[None], frozen=True):
    """The wall clock was set forward by so much, or back. Only for a machine that says so (`Stepping`): what lasts from
    then to then goes on to last as long, what is due at a certain time is due at that time.
    """

    by_ms: int


class Outcome(NamedTuple):
    facts: list[Fact]
    replies: list[tuple[int, Any]]
    """(ticket, reply): to commands decided now or earlier, to be given once the facts are durable."""
    is_immediate: bool = False
    """True: the replies rest on nothing stored and are given at once, even while earlier facts are being synced."""


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


@runtime_checkable
class Freezing(Protocol):
    """What a machine with a large state has on top, so that a snapshot of it can be made bit by bit."""

    def frozen_facts(self) -> Iterator[Fact]:
        """`facts` of this moment, however the machine changes while they are taken."""


def frozen_facts(machine: Machine) -> Iterator[Fact]:
    return machine.frozen_facts() if isinstance(machine, Freezing) else iter(list(machine.facts()))


@runtime_checkable
class Stepping(Protocol):
    """What a machine has on top that is told the wall clock's time, and measures durations with it all the same."""

    def clock_set(self, by_ms: int, now_ms: int) -> list[Fact]:
        """What follows from it; reads only."""


class Ahead(Protocol):
    """Changes that are made at once, outside `decide`; those of one turn of the loop are stored together. Nobody is
    told of them before that; and no command is decided in between.
    """

    @property
    def is_ahead(self) -> bool:
        """Something was changed and is not stored."""

    def facts_ahead(self, now_ms: int) -> list[Fact]:
        """What has to be stored and applied, and then it is not ahead any more; reads only."""

    def number_ahead(self) -> tuple[NumberRecord, int] | None:
        """The same as one number in a record that is known, if that is all that has to be stored; reads only."""

    def number_stored(self, now_ms: int) -> Fact:
        """It is in the ledger: do what applying `facts_ahead` would. What it was, to be told."""

    def take_back(self, now_ms: int) -> None:
        """It could not be stored: let the state be what the ledger says."""


@runtime_checkable
class Gathering(Protocol):
    """What a machine has on top that notes what its services have to look at. A follower has no services: there nobody
    takes it away."""

    def clear_gathered(self) -> None: ...


def clear_gathered(machine: Machine) -> None:
    if isinstance(machine, Gathering):
        machine.clear_gathered()


def stepping(machine: Machine) -> Stepping | None:
    """None: it does not care."""
    return machine if isinstance(machine, Stepping) else None


class Placing(Protocol):
    """What a machine with facts that want to know their place has on top."""

    def placed(self, fact: Any, ledger_offset: int) -> None:
        """`fact` was the last one applied."""


def apply_at(machine: Machine, fact: Fact, ledger_offset: int) -> None:
    """Apply a fact that lies in the ledger."""
    machine.apply(fact)
    if fact.wants_place:
        cast(Placing, machine).placed(fact, ledger_offset)
