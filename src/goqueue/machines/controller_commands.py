"""What the controller is asked to do, and what it answers."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from goqueue.machines.controller_facts import TopicStored
from goqueue.machines.machine import Command
from goqueue.model.codes import Code
from goqueue.model.secret import hides
from goqueue.model.topics import Topic

DEFAULT_FACTOR = 0
"""Of copies: as many as the cluster makes of a topic that does not say."""


@hides("secret")
class NameCluster(Command["Result"], frozen=True):
    """Give a new cluster its id and the secret that its receipts are signed with; one that has them keeps them."""

    cluster_id: str
    secret: bytes


class CreateTopic(Command["Result"], frozen=True):
    name: str
    topic_id: bytes
    partitions: int
    overrides: dict[str, str] = msgspec.field(default_factory=dict)
    check_only: bool = False
    may_collide: bool = False
    """The broker's own: a dead letter must not be stuck because `a_dlq` stands where `a.dlq` has to be made."""
    replication_factor: int = DEFAULT_FACTOR
    assignments: tuple[tuple[int, ...], ...] = ()
    """The nodes that are to have copies of each partition; the first of them leads. Empty: the cluster chooses."""


class DeleteTopic(Command["Result"], frozen=True):
    name: str


class AddPartitions(Command["Result"], frozen=True):
    name: str
    partitions: int
    check_only: bool = False
    assignments: tuple[tuple[int, ...], ...] = ()
    """Of the new ones."""


class ListChange(msgspec.Struct, frozen=True):
    """Items added to an option that is a list, or taken from it."""

    items: str
    is_added: bool
    default: str
    """The list, if the topic has none of its own."""

    def of(self, text: str | None) -> str:
        before = _items(self.default if text is None else text)
        changed = _items(self.items)
        if self.is_added:
            return ",".join([*before, *(item for item in changed if item not in before)])
        return ",".join(item for item in before if item not in changed)


class SetOptions(Command["Result"], frozen=True):
    name: str
    changes: Mapping[str, str | ListChange | None]
    """None: back to the default."""
    replace_all: bool = False
    check_only: bool = False


class Reassign(Command["Result"], frozen=True):
    """Copies of a partition are to be on these nodes, the preferred leader first. None: as before a reassignment that
    is under way."""

    name: str
    partition: int
    replicas: tuple[int, ...] | None


class TakeProducerIds(Command["ProducerIdBlock"], frozen=True):
    """A block of producer ids for whoever gives them out: nobody else is given any of them, ever."""

    count: int


class PlaceSchedule(Command["Result"], frozen=True):
    """The recurring schedule of this name lives with this partition from now on."""

    name: str
    topic_id: bytes
    partition: int


class ForgetSchedule(Command["Result"], frozen=True):
    name: str


class ProducerIdBlock(NamedTuple):
    """To TakeProducerIds: the ids from `first` on, below `end`."""

    first: int
    end: int


TOPIC_COMMANDS = (CreateTopic, AddPartitions, SetOptions)
"""Those that may only be checked."""


class Result(msgspec.Struct, frozen=True):
    code: Code = Code.NONE
    message: str = ""
    topic: Topic | None = None


class Transact(Command["Transacted"], frozen=True):
    """These topics as they are given here, if all that were expected are as they were; else nothing."""

    expected: Mapping[str, int]
    """The revision of each; 0: there is none of the name."""
    topics: Mapping[str, TopicStored | None]
    """None: it is forgotten."""


class Transacted(NamedTuple):
    """To Transact."""

    is_done: bool
    revision: int


class Copies:
    """How many copies topics have: on one node there is one of each."""

    is_spread = False
    """Whether partitions of a topic may have different leaders."""

    def of(self, name: str) -> int:  # noqa: ARG002  the same for all
        return 1

    def planned(self, command: CreateTopic) -> int | Result:
        """Of a topic that is to be made; a Result says why not."""
        if any(len(nodes) != 1 for nodes in command.assignments):
            return Result(Code.INVALID_REPLICA_ASSIGNMENT, "this cluster has one node")
        if command.replication_factor not in (DEFAULT_FACTOR, 1):
            text = f"{command.replication_factor} copies, but there is one node"
            return Result(Code.INVALID_REPLICATION_FACTOR, text)
        return 1


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]
