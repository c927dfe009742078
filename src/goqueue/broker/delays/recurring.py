"""Recurring schedules: messages that are published whenever a cron expression says so. Each lives with the partition
that it publishes to; the metadata says which that is, and it runs nowhere else.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from goqueue.broker.delays.firing import Body, check_fits, decode_body
from goqueue.broker.delays.partition import PartitionDelays
from goqueue.broker.delays.schedules import Key, Schedules
from goqueue.broker.topics.topics import Topics
from goqueue.machines.controller_commands import ForgetSchedule, PlaceSchedule, Result
from goqueue.machines.delays.commands import (
    DropRecurring,
    FoundRecurring,
    HoldRecurring,
    PauseRecurring,
    RecurringReply,
    ReleaseRecurring,
    StoreRecurring,
)
from goqueue.machines.machine import Command
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.recurring import Recurring
from goqueue.model.refusal import Refused
from goqueue.model.topics import Topic, TopicOptions
from goqueue.records.partitioners import Partitioner, partition_for
from goqueue.records.wishes import read_wishes, without_delay
from goqueue.runtime.ahead import OnReply
from goqueue.runtime.clock import Clock
from goqueue.telemetry.logs import get_logger

R = TypeVar("R")

events = get_logger("broker")

CheckRecord = Callable[[str, TopicOptions, bytes | None, Sequence[tuple[str, bytes | None]]], None]
"""Raises one of our errors if such a record may not be published."""


class Directory(Protocol):
    """Where each recurring schedule lives, by name."""

    @property
    def schedules(self) -> Mapping[str, Key]: ...

    def submit(self, command: Command[R], on_reply: OnReply[R]) -> None: ...


class RecurringSchedules:
    def __init__(self, schedules: Schedules, directory: Directory, topics: Topics, clock: Clock) -> None:
        self._schedules = schedules
        self._directory = directory
        self._topics = topics
        self._clock = clock
        self._seen: Mapping[str, Key] | None = None
        self.check_record: CheckRecord = lambda topic, options, value, headers: None

    def store(self, wanted: Recurring, on_reply: OnReply[RecurringReply]) -> None:
        """Publish a message again and again; the reply says when first, or what is wrong with the times.

        It is stored first, and runs when the metadata has its place: a crash in between leaves the one that there was.
        """
        try:
            topic, partition, body = self._placed(wanted)
            companion = self._schedules.of_or_made(topic, partition)
        except GoQueueError as error:
            on_reply(error)
            return
        name, here = wanted.name, (topic.id, partition)
        is_held = self._directory.schedules.get(name) != here

        def stored(reply: RecurringReply | GoQueueError) -> None:
            if isinstance(reply, GoQueueError) or reply.code is not Code.NONE or not is_held:
                on_reply(reply)
            else:
                self._directory.submit(PlaceSchedule(name, *here), lambda result: placed(result, reply))

        def placed(result: Result | GoQueueError, reply: RecurringReply) -> None:
            if isinstance(result, GoQueueError) or result.code is not Code.NONE:
                companion.submit(DropRecurring(name), _ignored)
                on_reply(result if isinstance(result, GoQueueError) else Refused(result.code, result.message))
                return
            self._settle(name)
            on_reply(reply)

        owner = wanted.owner, wanted.owner_host
        command = StoreRecurring(name, wanted.cron, wanted.timezone, body.encode(), is_held, *owner)
        companion.submit(command, stored)

    def _placed(self, wanted: Recurring) -> tuple[Topic, int, Body]:
        topic = self._topics.image.topics.get(wanted.topic)
        if topic is None:
            raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {wanted.topic!r}")
        partitioner, partition = self._topics.partitioner(topic), 0
        if wanted.key is not None and partitioner is not Partitioner.ROUND_ROBIN:
            partition = partition_for(wanted.key, topic.partitions, partitioner)
        now_ms = self._clock.now_ms()
        body = Body(now_ms, wanted.key, wanted.value, without_delay(wanted.headers))
        read_wishes(wanted.headers, now_ms)
        replica = self._topics.replica(wanted.topic, partition)
        check_fits(body, replica.log.options.batch_bytes_max)
        self.check_record(wanted.topic, replica.options, wanted.value, wanted.headers)
        return topic, partition, body

    def _settle(self, name: str) -> None:
        """It runs where the metadata says, and is dropped wherever else it is."""
        home = self._directory.schedules.get(name)
        for each in self._having(name):
            if each.key != home:
                each.submit(DropRecurring(name), _ignored)
            elif name not in each.shut_out():
                each.submit(ReleaseRecurring(name), _ignored)

    def places_changed(self) -> None:
        """In a cluster: what was moved to a partition of another node does not run here any more, and what waited to be
        placed here does."""
        places = self._directory.schedules
        if places is self._seen:
            return
        self._seen = places
        for each in self._schedules:
            if each.coordinator.is_active:
                for one in each.peek().recurring():
                    if places.get(one.name, each.key) != each.key:
                        each.submit(DropRecurring(one.name), _ignored)
                self._look_at_rights(each)

    def rights_changed(self) -> None:
        """Those whose owners may not write to their topic any more wait until they may again."""
        for each in self._schedules:
            if each.coordinator.is_active:
                self._look_at_rights(each)

    def _look_at_rights(self, companion: PartitionDelays) -> None:
        machine, places = companion.peek(), self._directory.schedules
        found = [each.name for each in machine.recurring() if places.get(each.name) == companion.key]
        if not found:
            return
        shut, held = set(companion.shut_out()), set(machine.held_recurring())
        for name in found:
            if name in held and name not in shut:
                companion.submit(ReleaseRecurring(name), _ignored)
            elif name in shut and name not in held:
                events.warning("recurring schedule waits: its owner may not write to its topic", schedule=name)
                companion.submit(HoldRecurring(name), _ignored)

    def pause(self, name: str, on_reply: OnReply[RecurringReply], *, is_paused: bool) -> None:
        """Let it run no more for now, or again. Twice is fine."""
        home = self._directory.schedules.get(name)
        companion = next((each for each in self._having(name) if each.key == home), None)
        if companion is None:
            on_reply(Refused(Code.INVALID_REQUEST, f"there is no recurring schedule {name!r}"))
        else:
            companion.submit(PauseRecurring(name, is_paused), on_reply)

    def drop(self, name: str, on_reply: OnReply[RecurringReply | Result]) -> None:
        """There first where it runs: what the metadata has lost sight of cannot be dropped any more."""
        home = self._directory.schedules.get(name)
        companion = next((each for each in self._having(name) if each.key == home), None)

        def dropped(reply: RecurringReply | GoQueueError) -> None:
            if isinstance(reply, GoQueueError):
                on_reply(reply)
            elif home is None:
                on_reply(Refused(Code.INVALID_REQUEST, f"there is no recurring schedule {name!r}"))
            else:
                self._directory.submit(ForgetSchedule(name), on_reply)

        if companion is None:
            dropped(RecurringReply(Code.NONE))
        else:
            companion.submit(DropRecurring(name), dropped)

    def all(self) -> list[FoundRecurring]:
        """By name."""
        places = self._directory.schedules
        found = [
            one
            for each in self._schedules
            if each.coordinator.is_active
            for one in each.peek().recurring()
            if places.get(one.name) == each.key
        ]
        return sorted(found)

    def find(self, name: str) -> FoundRecurring | None:
        home = self._directory.schedules.get(name)
        found = (each.peek().recurring() for each in self._having(name) if each.key == home)
        return next((one for some in found for one in some if one.name == name), None)

    def topic_of(self, name: str) -> str | None:
        """Of the schedule of this name, on whichever node it is. None: there is none."""
        home = self._directory.schedules.get(name)
        topic = None if home is None else self._topics.image.by_id(home[0])
        return None if topic is None else topic.name

    def body(self, found: FoundRecurring) -> Body | None:
        """None: the disk cannot give it back."""
        home = self._schedules.of(found.topic, found.partition)
        fact: Any = None if home is None else home.coordinator.read_fact(found.ledger_offset)
        return None if fact is None else decode_body(fact.body)

    def _having(self, name: str) -> list[PartitionDelays]:
        return [each for each in self._schedules if each.coordinator.is_active and each.peek().has_recurring(name)]


def _ignored(reply: object) -> None:
    """The next load settles it."""
    if isinstance(reply, GoQueueError):
        events.error("recurring schedule not settled", reason=str(reply))
