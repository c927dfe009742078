"""What happened to records, told to the journeys: from the facts of machines, and from lists of offsets, as ranges."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, Protocol

from goqueue.machines.delays.commands import RECURRING
from goqueue.machines.delays.facts import Cancelled, Scheduled, SchedulesDoomed, read_target_key, unpacked
from goqueue.machines.delays.jobs import FiringJob
from goqueue.machines.deliveries.facts import Cause, Changed, Extended, Leased, ReplayStored, SettledStored
from goqueue.machines.deliveries.machine import Deliveries
from goqueue.machines.machine import Fact
from goqueue.model.errors import GoQueueError
from goqueue.model.ranges import merge
from goqueue.model.topics import Image, TopicsChange
from goqueue.replica.replica import Replica
from goqueue.telemetry.journeys import Journeys, Step

RANGES_MAX = 1000
"""Of one fact that are remembered: a filtered replay may have chosen every other record. The rest is counted."""
DETAIL_CHARS_MAX = 250
ABORTED = "its transaction was aborted"

_LEASED: Final = Step.LEASED  # looking up enum members costs
_ACKED: Final = Step.ACKED
_STEPS: Final = {
    Cause.ACKED: Step.ACKED,
    Cause.NACKED: Step.NACKED,
    Cause.LEASE_ENDED: Step.LEASE_ENDED,
    Cause.REJECTED: Step.REJECTED,
    Cause.EXPIRED: Step.EXPIRED,
    Cause.REMOVED: Step.REMOVED,
    Cause.RETURNED: Step.RETURNED,
}


def note_delivery(journeys: Journeys, machine: Deliveries, facts: Iterable[Fact], now_ms: int) -> None:
    """Facts of the delivery machine that were applied just now."""
    for fact in facts:
        kind = type(fact)
        if kind is Leased:
            assert isinstance(fact, Leased)
            group, topic, partition = fact.place
            for pick in fact.picks:
                journeys.note(fact.now_ms, _LEASED, topic, partition, pick.first, pick.last, group, fact.consumer)
        elif kind is Changed:
            assert isinstance(fact, Changed)
            _note_changed(journeys, fact)
        elif kind is SettledStored:
            note_acked(journeys, fact)
        elif kind is Extended:
            assert isinstance(fact, Extended)
            for lease, first, last in fact.parts:
                held = machine.held_lease(lease)
                if held is not None:
                    group, topic, partition = held.place
                    journeys.note(now_ms, Step.EXTENDED, topic, partition, first, last, group, held.consumer)
        elif kind is ReplayStored:
            assert isinstance(fact, ReplayStored)
            _note_replayed(journeys, fact, now_ms)


def note_acked(journeys: Journeys, fact: Fact) -> None:
    assert isinstance(fact, SettledStored)
    group, topic, partition = fact.place
    for first, last in fact.ranges:
        journeys.note(fact.now_ms, _ACKED, topic, partition, first, last, group)


def _note_changed(journeys: Journeys, fact: Changed) -> None:
    group, topic, partition = fact.place
    for change in fact.changes:
        for cause in change.causes:
            detail = change.detail[:DETAIL_CHARS_MAX]
            journeys.note(fact.now_ms, _STEPS[cause], topic, partition, change.first, change.last, group, detail=detail)


def _note_replayed(journeys: Journeys, fact: ReplayStored, now_ms: int) -> None:
    group, topic, partition = fact.place
    for first, last in fact.chosen[:RANGES_MAX]:
        journeys.note(now_ms, Step.REPLAYED, topic, partition, first, last, group)
    rest = sum(last + 1 - first for first, last in islice(fact.chosen, RANGES_MAX, None))
    if rest:
        journeys.count(Step.REPLAYED, topic, group, rest)


def note_delay(journeys: Journeys, facts: Iterable[Fact], image: Image, now_ms: int) -> None:
    """Facts of the delay machine that were applied just now. `detail` of a schedule is when it is due."""
    scheduled: list[Scheduled] = []
    for fact in facts:
        if isinstance(fact, Scheduled):
            scheduled.append(fact)
        elif isinstance(fact, Cancelled):
            target, offset = read_target_key(fact.key())
            topic = image.by_id(target.topic_id)
            if topic is not None:
                journeys.note(now_ms, Step.CANCELLED, topic.name, target.partition, offset, offset)
        elif isinstance(fact, SchedulesDoomed):
            for first, last in merge((each, each) for each in unpacked("q", fact.offsets)):
                journeys.note(now_ms, Step.CANCELLED, fact.topic, fact.partition, first, last, detail=ABORTED)
    for begin, end in _alike(scheduled):
        one, last_offset = scheduled[begin], scheduled[end - 1].offset
        detail = str(one.due_ms)
        journeys.note(now_ms, Step.SCHEDULED, one.topic, one.partition, one.offset, last_offset, detail=detail)


def _alike(scheduled: Sequence[Scheduled]) -> Iterator[tuple[int, int]]:
    """Runs of neighbours that are due at the same time; one command is about one partition."""
    begin = 0
    for number in range(1, len(scheduled) + 1):
        if number < len(scheduled):
            before, this = scheduled[number - 1], scheduled[number]
            if this.offset == before.offset + 1 and this.due_ms == before.due_ms:
                continue
        yield begin, number
        begin = number


def note_due(journeys: Journeys, job: FiringJob, first_offset: int, count: int, now_ms: int) -> bool:
    """The last `count` records of a job were published at `first_offset` and behind it; the others had been before.
    `detail` is where the first of a range is now. False: a run of a recurring schedule, which was nowhere before.
    """
    offsets = job.records.offsets[len(job.records) - count :]
    if RECURRING in offsets:
        journeys.note(now_ms, Step.RECEIVED, job.topic, job.partition, first_offset, first_offset + count - 1)
        return False
    for first, last, offset in runs_of(zip(offsets, range(first_offset, first_offset + count))):
        journeys.note(now_ms, Step.DUE, job.topic, job.partition, first, last, detail=str(offset))
    return True


def runs_of(places: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
    """From pairs of an old and a new offset to ranges in which both rise together: first and last old, first new."""
    run: tuple[int, int, int] | None = None
    for old, new in places:
        if run is not None and old == run[1] + 1 and new - run[2] == old - run[0]:
            run = run[0], old, run[2]
        else:
            if run is not None:
                yield run
            run = old, old, new
    if run is not None:
        yield run


def note_refused(
    journeys: Journeys, replica: Replica | None, name: str, count: int, error: GoQueueError, now_ms: int
) -> None:
    """So many records have no offset. `replica`: None if there is no such partition; names of topics that nobody made
    must not be counted by, since anybody can think of more.
    """
    topic, partition = ("", -1) if replica is None else replica.place
    why = str(error) or type(error).__name__
    detail = (why if replica is not None else f"{name}: {why}")[:DETAIL_CHARS_MAX]
    journeys.note(now_ms, Step.REFUSED, topic, partition, -count, -1, detail=detail)


class Forgets(Protocol):
    def forget_topic(self, topic: str) -> None: ...


class Forgetting:
    """Counters and journeys go with their topics."""

    def __init__(self, *told: Forgets) -> None:
        self._told = told

    def topics_changed(self, change: TopicsChange) -> None:
        for topic in change.gone:
            for each in self._told:
                each.forget_topic(topic.name)
