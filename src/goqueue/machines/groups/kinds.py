"""What the machine of all groups must know of one group, whichever protocol it speaks: the place to plug one in."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

from goqueue.machines.groups.classic.group import ClassicGroup, SessionRenewed
from goqueue.machines.groups.classic.rebalance import ClassicChanged
from goqueue.machines.groups.classic.state import ClassicGeneration
from goqueue.machines.groups.commands import (
    CLASSIC,
    CodeReply,
    CommitOffsets,
    CommitReply,
    CommitTransactionOffsets,
    FetchOffsets,
    GroupOptions,
    Heartbeat,
    JoinGroup,
    JoinReply,
    KnownTopics,
    LeaveGroup,
    LeaveReply,
    ListedGroup,
    ResetOffsets,
    SyncGroup,
    SyncReply,
)
from goqueue.machines.machine import Fact, Outcome
from goqueue.model.codes import Code


class OneGroup(Protocol):
    """The machine of one group. A new one is empty; `decide` of any command to an empty group is well-defined."""

    @property
    def kind(self) -> str: ...

    def decide(self, command: Any, ticket: int, now_ms: int) -> Outcome: ...

    def know(self, known: KnownTopics) -> None:
        """Where to read the topics from now on."""

    def apply(self, fact: Any) -> None: ...

    def forget(self, key: bytes) -> None: ...

    def facts(self) -> Iterator[Fact]: ...

    def next_deadline_ms(self) -> int | None: ...

    def deadline_set_ms(self, fact: Any) -> int | None:
        """The earliest deadline that came with this fact, which was just applied; perhaps too early, never too late.
        Unlike the next of all, it must not cost a look at every member.
        """

    def admit_commit(self, command: CommitOffsets | CommitTransactionOffsets, now_ms: int) -> tuple[Code, list[Fact]]:
        """Whether this member may commit now, and facts that follow from its having spoken."""

    def fetch_refusal(self, command: FetchOffsets) -> Code: ...

    def empty_since_ms(self) -> int | None:
        """None while there are members."""

    def subscribed_topics(self) -> frozenset[str] | None:
        """None: cannot be told."""

    def keeps_progress(self) -> bool:
        """It is also known elsewhere how far the group has come, so it does not end with its offsets."""

    def listed(self) -> ListedGroup: ...

    def held_bytes(self) -> int:
        """Of all that its members tell and were told; it must not cost a look at every member."""

    def replaced_bytes(self, command: Any) -> int:
        """How much of that goes if this command is taken."""

    def retire(self) -> list[Fact]:
        """Tombstones for all that the ledger holds of this group; the last is for the group's own key."""


class GroupKind(NamedTuple):
    """A protocol that groups may speak. Every fact of it has a field `group_id`."""

    name: str
    """Also the key of the group itself is `ledger_key(name, group_id)`; its tombstone ends the group."""
    make: Callable[[str], OneGroup]
    commands: tuple[type, ...]
    """To one group: they have a field `group_id`."""
    facts: tuple[type[Fact], ...]
    """Without the tombstones, which are found by their keys."""
    opens: Callable[[Any], bool]
    """Whether this command may turn an empty group of another kind into one of this kind."""
    refuse: Callable[[Any, Code], Any]
    """The reply to a command that says this code, to all of it."""
    refuse_foreign: Callable[[Any], Any]
    """The reply to a command for a group of another kind."""
    part_names: tuple[str, ...] = ()
    """Parts of a group lie at `ledger_key(part_name, group_id, ...)`; their tombstones go to `OneGroup.forget`."""
    announcements: tuple[type, ...] = ()
    """Commands to all groups of this kind, and the latest of each type to every one that is made later."""
    topics_in: Callable[[Any], Iterable[str] | None] = lambda _fact: ()
    """The topics that a fact subscribes to; None: by an expression, which may mean any."""
    is_exclusive: bool = False
    """An id of this kind keeps it until the group is deleted, and a group of another kind never takes it on."""


class FirstUse(NamedTuple):
    """What a command would be to a group that there is not."""

    opens: bool
    """There would be one."""
    refused: Any = None
    """The reply, if only deliveries of the group are known, so that it is a share group, and this would make one of
    another kind; None: it would not."""


def first_use(kind: GroupKind | None, command: Any) -> FirstUse:
    if kind is not None:
        opens = kind.opens(command)
        return FirstUse(opens, kind.refuse_foreign(command) if opens and not kind.is_exclusive else None)
    if isinstance(command, CommitOffsets | CommitTransactionOffsets | ResetOffsets):
        return FirstUse(True, CommitReply((Code.GROUP_ID_NOT_FOUND,) * len(command.offsets)))
    return FirstUse(False)


def unused_since(group: OneGroup | None) -> Callable[[str], int | None]:
    """Since when the offsets of a topic serve nobody in this group; None: they do."""
    if group is None:
        return lambda topic: 0
    empty_since_ms = group.empty_since_ms()
    if empty_since_ms is not None:
        return lambda topic: empty_since_ms
    subscribed = group.subscribed_topics()
    return lambda topic: None if subscribed is None or topic in subscribed else 0


def classic_kind(options: GroupOptions) -> GroupKind:
    return GroupKind(
        name=CLASSIC,
        make=lambda group_id: ClassicGroup(group_id, options),
        commands=(JoinGroup, SyncGroup, Heartbeat, LeaveGroup),
        facts=(ClassicGeneration, ClassicChanged, SessionRenewed),
        opens=lambda command: isinstance(command, JoinGroup) and not command.member_id,
        refuse=_refuse,
        refuse_foreign=_refuse_foreign,
    )


def _refuse(command: Any, code: Code) -> Any:
    match command:
        case JoinGroup():
            return JoinReply(code, command.member_id)
        case SyncGroup():
            return SyncReply(code)
        case LeaveGroup():
            return LeaveReply(code)
    return CodeReply(code)


def _refuse_foreign(command: Any) -> Any:
    """There are no classic members in it, so none of them is known; nor can one join."""
    match command:
        case JoinGroup(member_id=""):
            return _refuse(command, Code.INCONSISTENT_GROUP_PROTOCOL)
        case LeaveGroup():
            return LeaveReply(Code.NONE, (Code.UNKNOWN_MEMBER_ID,) * len(command.members))
    return _refuse(command, Code.UNKNOWN_MEMBER_ID)
