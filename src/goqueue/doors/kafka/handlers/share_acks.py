"""Acknowledgements of share groups, which come by themselves or with a fetch: what became of leased records."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple

from goqueue.broker.queues.policies import policy_of
from goqueue.doors.kafka.request import Request
from goqueue.doors.kafka.share_sessions import ShareSession, TopicIdPartition
from goqueue.machines.deliveries.commands import ANY_LEASE, How, Place, Settle, Settlement, SettleReply, Verdict
from goqueue.model.codes import Code
from goqueue.model.error_codes import code_of
from goqueue.model.errors import CoordinatorFailed, CoordinatorLoading, GoQueueError, NotCoordinator
from goqueue.model.refusal import Refused
from goqueue.wire.kafka.messages.share_groups import NO_DELAY, AcknowledgementBatch, ShareTopic

RENEW = 4
HOWS = {0: How.ACK, 1: How.ACK, 2: How.RETRY, 3: How.REJECT, RENEW: How.EXTEND}
"""By Kafka's numbers: gap (there is no such record, so nobody need ask for it), accept, release, reject, renew."""
BATCH_OFFSETS_MAX = 1_000_000


class Acked(NamedTuple):
    code: Code = Code.NONE
    message: str | None = None
    verdicts: Sequence[int] = ()
    """Of each settlement, if they differ."""


ALL_DONE = Acked()
OnAcked = Callable[[dict[TopicIdPartition, Acked]], None]
_new_tuple = tuple.__new__
_DONE = Verdict.DONE  # looking up enum members costs
_NONE = Code.NONE


class _Acking:
    """Acknowledgements of one request, until all that came of them is durable."""

    __slots__ = ("_on_acked", "_results", "waiting")

    def __init__(self, on_acked: OnAcked) -> None:
        self._on_acked = on_acked
        self._results: dict[TopicIdPartition, Acked] = {}
        self.waiting = 1
        """For so many replies, and until all were asked for."""

    def replied(self, key: TopicIdPartition, reply: SettleReply | GoQueueError) -> None:
        if isinstance(reply, GoQueueError):
            self.refused(key, code_of_partition(reply), str(reply))
            return
        verdicts = reply.verdicts
        if verdicts.count(_DONE) == len(verdicts):
            self._add(key, ALL_DONE)
        else:
            why = "some of these records are not leased by this member"
            self._add(key, Acked(Code.INVALID_RECORD_STATE, why, [int(verdict) for verdict in verdicts]))

    def refused(self, key: TopicIdPartition, code: Code, why: str) -> None:
        self._add(key, Acked(code, why))

    def _add(self, key: TopicIdPartition, result: Acked) -> None:
        """A partition that is named twice is told what went wrong first."""
        if self._results.get(key, ALL_DONE).code is _NONE:
            self._results[key] = result
        self.done()

    def done(self) -> None:
        self.waiting -= 1
        if not self.waiting:
            self._on_acked(self._results)


def acknowledge(
    request: Request, session: ShareSession, topics: Iterable[ShareTopic], *, renews: bool, on_acked: OnAcked
) -> None:
    """Settle what is acknowledged in each partition; `on_acked` once all that was done is durable."""
    acking = _Acking(on_acked)
    for topic in topics:
        for one in topic.partitions:
            batches = one.acknowledgement_batches
            if not batches:
                continue
            key = (topic.topic_id, one.partition_index)
            acking.waiting += 1
            try:
                name = find_topic(request, key)
                lease_ms = lease_ms_of(request, session.group_id, name) if renews else None
                settlements = _settlements(batches, lease_ms)
            except Refused as error:
                acking.refused(key, error.code, str(error))
                continue
            place = _new_tuple(Place, (session.group_id, name, one.partition_index))
            settle = Settle(place, settlements, session.member_id)
            request.broker.queues.submit(settle, partial(acking.replied, key))
    acking.done()


def code_of_partition(error: GoQueueError) -> Code:
    """Deliveries live with their partition: its leader is asked next, or once more. Clients of share groups know of no
    coordinator that has to do with records; Java's ends with an exception when a partition is answered so."""
    if isinstance(error, NotCoordinator | CoordinatorLoading | CoordinatorFailed):
        return Code.NOT_LEADER_OR_FOLLOWER
    return code_of(error)


def find_topic(request: Request, key: TopicIdPartition) -> str:
    """The name of a topic that has this partition; else Refused."""
    topic_id, partition = key
    topic = request.broker.topics.image.by_id(topic_id)
    if topic is None:
        raise Refused(Code.UNKNOWN_TOPIC_ID, "there is no topic with this id")
    if not 0 <= partition < topic.partitions:
        raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {partition} of {topic.name!r}")
    return topic.name


def lease_ms_of(request: Request, group_id: str, topic: str) -> int:
    known = request.broker.topics.image.topics[topic]
    return policy_of(known.options(request.broker.topics.defaults), request.broker.queues.options(group_id)).lease_ms


def _settlements(batches: Iterable[AcknowledgementBatch], lease_ms: int | None) -> tuple[Settlement, ...]:
    found: list[Settlement] = []
    next_offset = 0
    for batch in batches:
        first, last, types = batch.first_offset, batch.last_offset, batch.acknowledge_types
        count = last - first + 1
        if first < next_offset or not 0 < count <= BATCH_OFFSETS_MAX:
            raise Refused(Code.INVALID_REQUEST, f"offsets {first} to {last} are out of order")
        if len(types) not in (1, count):
            raise Refused(Code.INVALID_REQUEST, f"{len(types)} kinds of acknowledgement for {count} records")
        next_offset = last + 1
        if len(types) == 1:
            found.append(_settlement(first, last, types[0], lease_ms, batch))
            continue
        for kind, group in groupby(types):
            width = len(list(group))
            found.append(_settlement(first, first + width - 1, kind, lease_ms, batch))
            first += width
    return tuple(found)


def _settlement(first: int, last: int, kind: int, lease_ms: int | None, batch: AcknowledgementBatch) -> Settlement:
    if kind not in HOWS or (kind == RENEW and lease_ms is None):
        raise Refused(Code.INVALID_REQUEST, f"acknowledgements of kind {kind} were not announced")
    delay_ms = batch.gq_delay_ms
    if delay_ms < NO_DELAY:
        raise Refused(Code.INVALID_REQUEST, f"a delay of {delay_ms} ms")
    if delay_ms == NO_DELAY:
        delay_ms = lease_ms if kind == RENEW and lease_ms else 0
    return _new_tuple(Settlement, (first, last, HOWS[kind], delay_ms, batch.gq_reason or "", ANY_LEASE))
