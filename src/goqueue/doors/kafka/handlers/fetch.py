"""Fetch. v7: sessions, in which only what changes is named (KIP-227): see `fetch_sessions`. Older clients, and those
that want none, name everything each time.
"""

from collections.abc import Iterator
from functools import partial
from struct import Struct

from goqueue.broker.reading.fetch_session import Answer, FetchSession
from goqueue.broker.reading.wants import Got, Limits, Want
from goqueue.doors.kafka.fetch_sessions import FINAL_EPOCH, FULL_EPOCH, NO_SESSION, KeptSession
from goqueue.doors.kafka.leaders import ELSEWHERE, name_leaders
from goqueue.doors.kafka.request import Request
from goqueue.model.codes import Code
from goqueue.model.quotas import CONSUMED
from goqueue.model.refusal import Refused
from goqueue.records.batch import HEADER_BYTES, LENGTH_END
from goqueue.wire.kafka.messages.fetch import (
    AbortedTransaction,
    FetchedPartition,
    FetchedTopic,
    FetchRequest,
    FetchResponse,
)
from goqueue.wire.kafka.notation import NO_UUID

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
    limits = Limits(
        message.min_bytes,
        message.max_bytes if request.allowance is None else request.allowance.at_once(CONSUMED, message.max_bytes),
        min(message.max_wait_ms, MAX_WAIT_MS),
        message.isolation_level == READ_COMMITTED,
        request.header.client_id or "",
    )
    if message.session_epoch == FINAL_EPOCH or (message.session_epoch == FULL_EPOCH and not message.topics):
        _fetch_once(request, message, limits)
        return
    try:
        reading, kept = _enter(request, message)
    except Refused as error:
        request.answer(FetchResponse(error_code=error.code))
        return
    number = NO_SESSION if kept is None else kept.number
    if reading is None:
        request.answer(FetchResponse(session_id=number))
        return
    if kept is None:
        request.reply.on_lost = reading.close
    reading.fetch(request.broker.fetcher, limits, partial(_answer, request, number, limits))


def _fetch_once(request: Request, message: FetchRequest, limits: Limits) -> None:
    """Outside of any session."""
    if message.session_id != NO_SESSION:
        request.sessions.fetch.close(request.connection, message.session_id)
    if request.is_in_debt:
        request.answer(FetchResponse())
        return
    wants = _wants(message, uses_ids=request.version >= TOPIC_IDS_FROM_VERSION)
    waiting = request.broker.fetcher.fetch(wants, limits, partial(_answer, request, NO_SESSION, limits))
    if waiting is not None:
        request.reply.on_lost = waiting.close


def _enter(request: Request, message: FetchRequest) -> tuple[FetchSession | None, KeptSession | None]:
    """What is read, and the session that it belongs to, if there was room for one. Nothing is read for now by a client
    that has read more than it may in a second: as Kafka answers it, no partition has anything new."""
    sessions, connection = request.sessions.fetch, request.connection
    uses_ids = request.version >= TOPIC_IDS_FROM_VERSION
    if message.session_epoch == FULL_EPOCH:
        if message.session_id != NO_SESSION:
            sessions.close(connection, message.session_id)
        if request.is_in_debt:
            return None, None
        reading: FetchSession = request.broker.fetcher.session()
        reading.change(_wants(message, uses_ids=uses_ids))
        kept = sessions.open(connection, reading, uses_ids=uses_ids)
        reading.is_once = kept is None
        return reading, kept
    kept = sessions.find(connection, message.session_id, message.session_epoch, uses_ids=uses_ids)
    reading = kept.reading
    forgotten = [
        (topic.topic_id if uses_ids else topic.topic, number)
        for topic in message.forgotten_topics_data
        for number in topic.partitions
    ]
    reading.change(_wants(message, uses_ids=uses_ids), forgotten)
    if not reading.entries:
        sessions.close(connection, kept.number)
        return None, None
    sessions.went_on(kept)
    return None if request.is_in_debt else reading, kept


def _wants(message: FetchRequest, *, uses_ids: bool) -> list[Want]:
    wants = []
    for topic in message.topics:
        name, topic_id = ("", topic.topic_id) if uses_ids else (topic.topic, b"")
        wants += [
            Want(name, one.partition, one.fetch_offset, one.partition_max_bytes, one.current_leader_epoch, topic_id)
            for one in topic.partitions
        ]
    return wants


def _answer(request: Request, session_id: int, limits: Limits, found: Answer) -> None:
    if request.allowance is not None and request.allowance.counts(CONSUMED):
        request.count(CONSUMED, sum(_messages(want, got) for want, got in found))
    response = _response(found, is_read_committed=limits.is_read_committed)
    response.session_id = session_id
    version = request.version
    if version >= LEADERS_FROM_VERSION and any(got.code in ELSEWHERE for _, got in found):
        endpoints = name_leaders(request, _led_elsewhere(request, response))
        response.node_endpoints = endpoints if version >= ENDPOINTS_FROM_VERSION else []
    request.answer(response)


def _led_elsewhere(request: Request, response: FetchResponse) -> Iterator[tuple[str, int, FetchedPartition]]:
    image = request.broker.topics.image
    for topic in response.responses:
        found = image.by_id(topic.topic_id) if request.version >= TOPIC_IDS_FROM_VERSION else None
        for one in topic.partitions:
            if one.error_code in ELSEWHERE:
                yield found.name if found else topic.topic, one.partition_index, one


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


def _response(found: Answer, *, is_read_committed: bool) -> FetchResponse:
    topics: dict[str | bytes, FetchedTopic] = {}
    for want, got in found:
        key = want.topic_id or want.topic
        topic = topics.get(key)
        if topic is None:
            topic = topics[key] = FetchedTopic(want.topic, want.topic_id or NO_UUID)
        topic.partitions.append(
            FetchedPartition(
                want.partition,
                got.code,
                got.high_watermark,
                got.last_stable_offset,
                got.start_offset,
                aborted_transactions=[AbortedTransaction(*each) for each in got.aborted] if is_read_committed else None,
                records=b"" if got.piece is None else got.piece.view(),
            )
        )
    return FetchResponse(responses=list(topics.values()))
