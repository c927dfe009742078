"""Why groups rebalance, and who comes and goes: read from the facts of their coordinators, and counted."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from goqueue.machines.groups.classic.group import ClassicGroup
from goqueue.machines.groups.classic.rebalance import ClassicChanged
from goqueue.machines.groups.classic.state import ClassicForgotten, ClassicGeneration
from goqueue.machines.groups.commands import LeaveGroup, TopicDeleted, TopicsChanged
from goqueue.machines.groups.consumer import facts as consumer
from goqueue.machines.groups.consumer.group import ConsumerGroup
from goqueue.machines.groups.kinds import OneGroup
from goqueue.machines.groups.share import facts as share
from goqueue.machines.machine import Fact
from goqueue.telemetry.meters import JOIN, LEAVE, SUBSCRIPTION, TIMEOUT, TOPICS, Meters

_GONE = (ClassicForgotten, consumer.ConsumerGroupGone, share.ShareGroupGone)
_MEMBER_KEPT = (consumer.ConsumerMemberKept, share.ShareMemberChanged)
_MEMBER_GONE = (consumer.ConsumerMemberGone, share.ShareMemberGone)
_EPOCH_KEPT = (consumer.ConsumerGroupKept, share.ShareGroupChanged)
_OF_GROUPS = (*_GONE, *_MEMBER_KEPT, *_MEMBER_GONE, *_EPOCH_KEPT, ClassicChanged, ClassicGeneration)


class _Known:
    """Of one group."""

    __slots__ = ("cause", "generation", "members", "seats")

    def __init__(self) -> None:
        self.generation = 0
        self.seats = 0
        """Members of a classic group are only counted: a look at each for every one that joins would take too long."""
        self.members: set[str] = set()
        self.cause = ""
        """What came first since the last generation."""


class Rebalances:
    def __init__(self, meters: Meters) -> None:
        self._meters = meters
        self._known: dict[str, _Known] = {}

    def learn(self, facts: Iterable[Any], groups: Mapping[str, OneGroup]) -> None:
        """Before they are applied: what groups are that were not seen since the start."""
        for fact in facts:
            if isinstance(fact, _OF_GROUPS) and fact.group_id not in self._known:
                self._learn(fact.group_id, groups.get(fact.group_id))

    def _learn(self, group_id: str, group: object) -> None:
        if isinstance(group, ClassicGroup):
            known = self._of(group_id)
            known.generation, known.seats = group.state.generation, len(group.state.seats)
        elif isinstance(group, ConsumerGroup):
            known = self._of(group_id)
            known.generation = 0 if group.state.group is None else group.state.group.epoch
            known.members = set(group.state.members)

    def see(self, facts: Sequence[Fact], command: Any) -> None:
        """After they were applied. `command`: what they were decided upon."""
        for fact in facts:
            self._see_members(fact, command)
        for fact in facts:
            self._see_generation(fact, command)

    def _see_members(self, fact: Any, command: Any) -> None:
        if isinstance(fact, _GONE):
            self._known.pop(fact.group_id, None)
        elif isinstance(fact, ClassicChanged):
            known = self._of(fact.group_id)
            change, known.seats = len(fact.state.seats) - known.seats, len(fact.state.seats)
            self._count(fact.group_id, known, change, command)
        elif isinstance(fact, _MEMBER_KEPT):
            known = self._of(fact.group_id)
            if fact.member.member_id not in known.members:
                known.members.add(fact.member.member_id)
                self._count(fact.group_id, known, 1, command)
        elif isinstance(fact, _MEMBER_GONE):
            known = self._of(fact.group_id)
            if fact.member_id in known.members:
                known.members.remove(fact.member_id)
                self._count(fact.group_id, known, -1, command)

    def _count(self, group_id: str, known: _Known, change: int, command: Any) -> None:
        if not change:
            return
        cause = JOIN if change > 0 else (LEAVE if _is_leave(command) else TIMEOUT)
        known.cause = known.cause or cause
        self._meters.moved(group_id, cause, abs(change))

    def _see_generation(self, fact: Any, command: Any) -> None:
        if isinstance(fact, ClassicChanged):
            generation = fact.state.generation
        elif isinstance(fact, ClassicGeneration):
            generation = fact.generation
        elif isinstance(fact, _EPOCH_KEPT):
            generation = fact.epoch
        else:
            return
        known = self._of(fact.group_id)
        if generation <= known.generation:
            return
        known.generation = generation
        cause, known.cause = known.cause or _other_cause(command), ""
        self._meters.rebalanced(fact.group_id, cause)

    def _of(self, group_id: str) -> _Known:
        known = self._known.get(group_id)
        if known is None:
            known = self._known[group_id] = _Known()
        return known


def _is_leave(command: Any) -> bool:
    if isinstance(command, consumer.ConsumerHeartbeat | share.ShareHeartbeat):
        return command.member_epoch < 0
    return isinstance(command, LeaveGroup)


def _other_cause(command: Any) -> str:
    """Nobody came or went."""
    return TOPICS if isinstance(command, TopicsChanged | TopicDeleted) else SUBSCRIPTION
