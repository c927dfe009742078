"""Fetch. Sessions are not kept: session id 0 is always right, and a parked fetch then holds no state but itself."""

from struct import Struct

from goqueue.broker.reading.fetch import Got, Limits, Want
from goqueue.doors.kafka.leaders import ELSEWHERE, name_leaders
from goqueue.doors.kafka.request import Request
from goqueue.model.codes import Code
from goqueue.model.quotas import CONSUMED
from goqueue.records.batch import HEADER_BYTES, LENGTH_END
from goqueue.wire.kafka.messages.fetch import (
    AbortedTransaction,
    FetchedPartition,
    FetchedTopic,
    FetchRequest,
    FetchResponse,
)

READ_COMMITTED = 1
TOPIC_IDS_FROM_VERSION = 13
LEADERS_FROM_VERSION, ENDPOINTS_FROM_VERSION = 12, 16
MAX_WAIT_MS = 5 * 60 * 1000
BATCHES_COUNTED_MAX = 10_000
"""Of one partition, for quotas: some milliseconds."""
_LENGTH_AND_COUNT = Struct(">8xi45xi")
"""Of a batch header."""


def handle_fetch(request: Request) -> None:
    message: FetchRequest = request.message
    if is_replica(message):
        request.answer(_denial(message))
        return
    if request.is_in_debt:  # as Kafka answers it: no partition has anything new
        request.answer(FetchResponse())
        return
    image = request.broker.topics.image
    version = request.version
    uses_ids = version >= TOPIC_IDS_FROM_VERSION
    wants, unknown = [], set()
    for number, topic in enumerate(message.topics):
        found = image.by_id(topic.topic_id) if uses_ids else None
        name = (found.name if found else "") if uses_ids else topic.topic
        if uses_ids and found is None:
            unknown.add(number)
        wants += [
            Want(name, one.partition, one.fetch_offset, one.partition_max_bytes, one.current_leader_epoch)
            for one in topic.partitions
        ]
    limits = Limits(
        message.min_bytes,
        message.max_bytes if request.allowance is None else request.allowance.at_once(CONSUMED, message.max_bytes),
        min(message.max_wait_ms, MAX_WAIT_MS) if wants else 0,
        message.isolation_level == READ_COMMITTED,
        request.header.client_id or "",
    )

    def answer(got: list[Got]) -> None:
        if request.allowance is not None and request.allowance.counts(CONSUMED):
            request.count(CONSUMED, sum(map(_messages, wants, got)))
        response = _response(message, got, unknown, limits.is_read_committed)
        if version >= LEADERS_FROM_VERSION and not ELSEWHERE.isdisjoint([one.code for one in got]):
            partitions = (one for topic in response.responses for one in topic.partitions)
            led_elsewhere = ((want, one) for want, one in zip(wants, partitions) if one.error_code in ELSEWHERE)
            endpoints = name_leaders(request, ((want.topic, want.partition, one) for want, one in led_elsewhere))
            response.node_endpoints = endpoints if version >= ENDPOINTS_FROM_VERSION else []
        request.answer(response)

    parked = request.broker.fetcher.fetch(wants, limits, answer)
    if parked is not None:
        request.reply.on_lost = parked.cancel


def _messages(want: Want, got: Got) -> int:
    """Offsets that were asked for, without those that compaction left free: there may be millions for each record.
    Markers count."""
    piece = got.piece
    if piece is None:
        return 0
    return min(max(0, piece.next_offset - max(want.offset, piece.first_offset)), _records_in(piece.view()))


def _records_in(batches: memoryview) -> int:
    """As their headers say. What stands behind very many is taken to be as dense."""
    found = position = 0
    for _ in range(BATCHES_COUNTED_MAX):
        if position + HEADER_BYTES > len(batches):
            return found
        length, count = _LENGTH_AND_COUNT.unpack_from(batches, position)
        found += count
        position += length + LENGTH_END
    return found * len(batches) // position


def is_replica(message: FetchRequest) -> bool:
    """A fetch that says it is a follower's: it would acknowledge what nobody has. Nodes have a door of their own."""
    state = message.replica_state
    return message.replica_id >= 0 or (state is not None and state.replica_id >= 0)


def _denial(message: FetchRequest) -> FetchResponse:
    code = Code.CLUSTER_AUTHORIZATION_FAILED
    response = FetchResponse(error_code=code)
    for topic in message.topics:
        partitions = [FetchedPartition(one.partition, code, -1) for one in topic.partitions]
        response.responses.append(FetchedTopic(topic.topic, topic.topic_id, partitions))
    return response


def _response(message: FetchRequest, got: list[Got], unknown: set[int], is_read_committed: bool) -> FetchResponse:
    response = FetchResponse()
    results = iter(got)
    for number, topic in enumerate(message.topics):
        answered = FetchedTopic(topic.topic, topic.topic_id)
        response.responses.append(answered)
        for wanted in topic.partitions:
            one = next(results)
            answered.partitions.append(
                FetchedPartition(
                    wanted.partition,
                    Code.UNKNOWN_TOPIC_ID if number in unknown else one.code,
                    one.high_watermark,
                    one.last_stable_offset,
                    one.start_offset,
                    aborted_transactions=[AbortedTransaction(*aborted) for aborted in one.aborted]
                    if is_read_committed
                    else None,
                    records=b"" if one.piece is None else one.piece.view(),
                )
            )
    return response
