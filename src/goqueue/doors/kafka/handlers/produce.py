"""Produce: one batch per partition, answered when every one of them may be acknowledged."""

from collections.abc import Iterator
from struct import Struct
from typing import TypeAlias

from goqueue.broker.publishing.publish import Acknowledger
from goqueue.doors.kafka.leaders import ELSEWHERE, name_leaders
from goqueue.doors.kafka.refused_batches import sent_by
from goqueue.doors.kafka.request import Request
from goqueue.model.codes import Code
from goqueue.model.error_codes import code_of
from goqueue.model.errors import GoQueueError, InvalidWish
from goqueue.model.quotas import PRODUCED
from goqueue.model.refusal import InvalidRecords, Refused
from goqueue.replica.replica import Appended
from goqueue.wire.kafka.messages.produce import (
    DURABILITIES,
    NOT_TOLD,
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

ACKS_ALL = -1
ZSTD = 4
ZSTD_FROM_VERSION = 7
LEADERS_FROM_VERSION = 10
ABORTABLE_FROM_VERSION = 11
BEGINS_AT_ZERO_FROM = 12
"""Transactions version 2."""
IDS_FROM_VERSION = 13
ATTRIBUTES_AT = 22
"""The low byte of a batch's attributes, which names the codec."""
RECORDS_AT = 57
"""The number of records in it."""
_COUNT = Struct(">i")

Appending: TypeAlias = tuple[str, PartitionProduceData, PartitionProduceResponse]
"""A topic, what shall be appended to a partition of it, and the answer."""


class PendingProduce:
    """Counts down the partitions that are not acknowledged yet."""

    __slots__ = ("_request", "_response", "_started_s", "_taken", "_waiting")

    def __init__(self, request: Request, response: ProduceResponse) -> None:
        self._request = request
        self._response = response
        self._waiting = 1  # ourselves, until all partitions have been gone through
        self._started_s = request.broker.publisher.now_s()
        self._taken: dict[str, PartitionProduceResponse] = {}
        """By topic, one of what was appended."""

    def wait(self, topic: str, result: PartitionProduceResponse, replica: Acknowledger, appended: Appended) -> None:
        self._taken[topic] = result
        if replica.failure is None and appended.next_offset <= replica.high_watermark:
            return
        self._waiting += 1

        def ended(code: Code) -> None:
            if code is not Code.NONE:
                result.error_code, result.base_offset, result.gq_durability = code, -1, NOT_TOLD
            self.done()

        message: ProduceRequest = self._request.message
        acknowledgements = self._request.broker.publisher.acknowledgements
        needs_all = message.acks == ACKS_ALL
        acknowledgements.wait(replica, appended.next_offset, message.timeout_ms, ended, needs_all_copies=needs_all)

    def done(self) -> None:
        self._waiting -= 1
        if not self._waiting:
            self._name_leaders()
            self._request.answer(self._response)
            for topic, result in self._taken.items():
                if result.error_code == Code.NONE:
                    publisher = self._request.broker.publisher
                    publisher.acknowledged(topic, result.index, result.base_offset, self._started_s)

    def _name_leaders(self) -> None:
        request = self._request
        if request.version < LEADERS_FROM_VERSION:
            return
        image = request.broker.topics.image

        def answers() -> Iterator[tuple[str, int, PartitionProduceResponse]]:
            for topic in self._response.responses:
                found = image.by_id(topic.topic_id) if request.version >= IDS_FROM_VERSION else None
                name = topic.name if found is None else found.name
                led_elsewhere = (one for one in topic.partition_responses if one.error_code in ELSEWHERE)
                yield from ((name, one.index, one) for one in led_elsewhere)

        self._response.node_endpoints = name_leaders(request, answers())


def handle_produce(request: Request) -> None:
    message: ProduceRequest = request.message
    response = ProduceResponse()
    pending = PendingProduce(request, response)
    is_allowed = message.acks in (-1, 0, 1)
    to_append: list[Appending] = []
    if request.allowance is not None and request.allowance.counts(PRODUCED):
        batches = (each.records for topic in message.topic_data for each in topic.partition_data)
        request.count(PRODUCED, sum(map(_messages, batches)))
    for topic in message.topic_data:
        name = topic.name
        unknown = Code.UNKNOWN_TOPIC_OR_PARTITION
        if request.version >= IDS_FROM_VERSION:
            found = request.broker.topics.image.by_id(topic.topic_id)
            name, unknown = (found.name if found else ""), Code.UNKNOWN_TOPIC_ID
        answered = TopicProduceResponse(topic.name, topic.topic_id)
        response.responses.append(answered)
        for data in topic.partition_data:
            result = PartitionProduceResponse(data.index, base_offset=-1)
            answered.partition_responses.append(result)
            if not is_allowed:
                result.error_code = Code.INVALID_REQUIRED_ACKS
            elif not name:
                result.error_code = unknown
                request.broker.publisher.refused("", data.index, 1, Refused(unknown))
            else:
                to_append.append((name, data, result))
    _append_all(request, iter(to_append), pending)


def _messages(records: memoryview | None) -> int:
    """As many as a batch says, which nobody has looked at yet, if it can have so many."""
    if records is None or len(records) < RECORDS_AT + _COUNT.size:
        return 0
    (count,) = _COUNT.unpack_from(records, RECORDS_AT)
    return max(0, min(int(count), len(records)))


def _append_all(request: Request, to_append: Iterator[Appending], pending: PendingProduce) -> bool:
    """One after the other. One that takes turns holds its connection: what comes behind it must not overtake it.
    False: that is so.
    """
    for topic, data, result in to_append:
        records = data.records
        code = _unfit(records, request.version)
        if records is None or code is not Code.NONE:
            result.error_code = code
            request.broker.publisher.refused(topic, data.index, 1, Refused(code))
        elif not _append(request, (topic, data.index, records), result, pending, to_append):
            return False
    request.message.topic_data = []  # its records are in the log: whoever waits for copies need not keep them
    if request.message.acks == 0:
        request.answer_nothing()
    else:
        pending.done()
    return True


def _unfit(records: memoryview | None, version: int) -> Code:
    """Why these bytes cannot be a batch that a producer of this version may send, if so."""
    if records is None or len(records) <= ATTRIBUTES_AT:
        return Code.CORRUPT_MESSAGE
    is_new = records[ATTRIBUTES_AT] & 0x07 == ZSTD and version < ZSTD_FROM_VERSION
    return Code.UNSUPPORTED_COMPRESSION_TYPE if is_new else Code.NONE


def known_as(code: Code, version: int) -> Code:
    """Newer clients know by one code that it is enough to abort, and by another that they have to wait: older ones find
    that fatal, and try again if copies are missing.
    """
    if code is Code.CONCURRENT_TRANSACTIONS and version < BEGINS_AT_ZERO_FROM:
        return Code.NOT_ENOUGH_REPLICAS
    is_abortable = code is Code.INVALID_TXN_STATE and version >= ABORTABLE_FROM_VERSION
    return Code.TRANSACTION_ABORTABLE if is_abortable else code


def _append(
    request: Request,
    batch: tuple[str, int, memoryview],
    result: PartitionProduceResponse,
    pending: PendingProduce,
    following: Iterator[Appending],
) -> bool:
    """False: it takes turns, and goes on with those that follow when it is done."""
    publisher, (topic, index, records) = request.broker.publisher, batch
    place, sent, refused_batches = (topic, index), sent_by(records), request.connection.refused_batches
    try:
        if publisher.may_take_turns(topic, index, records) and request.connection.is_shared(records):
            records = memoryview(bytearray(records))  # other requests will be read into its memory
        steps = publisher.told_steps(
            topic,
            index,
            records,
            needs_all_copies=request.message.acks == ACKS_ALL,
            begins_at_zero=request.version >= BEGINS_AT_ZERO_FROM,
            is_behind=sent is not None and refused_batches.covers(place, sent),
        )
    except Refused as error:  # its client may not write there; perhaps it may elsewhere
        _refuse(request, result, error)
        return True
    is_held = False
    is_done = False

    def done(published: tuple[Acknowledger, Appended] | Exception) -> None:
        nonlocal is_done
        is_done = True
        if isinstance(published, GoQueueError):
            _refuse(request, result, published)
            if sent is not None:
                code = refused_batches.refused(place, sent, Code(result.error_code))
                if code != result.error_code:
                    result.error_code, result.error_message = code, "a batch that was sent before it was refused"
        elif isinstance(published, Exception):
            request.fail(published)
        else:
            refused_batches.accepted(place)
            _accept(request, topic, result, published, pending)
        if is_held and _append_all(request, following, pending):
            request.broker.clock.call_soon(request.connection.go_on)

    publisher.turns.run(steps, done)
    if not is_done:
        is_held = True
        request.connection.hold()
    return is_done


def _refuse(request: Request, result: PartitionProduceResponse, error: GoQueueError) -> None:
    result.error_code = known_as(code_of(error), request.version)
    result.error_message = str(error)
    faults = error.faults if isinstance(error, InvalidRecords | InvalidWish) else {}
    result.record_errors = [BatchIndexAndErrorMessage(*each) for each in faults.items()]


def _accept(
    request: Request,
    topic: str,
    result: PartitionProduceResponse,
    published: tuple[Acknowledger, Appended],
    pending: PendingProduce,
) -> None:
    replica, appended = published
    result.base_offset = appended.base_offset
    result.log_append_time_ms = appended.append_time
    result.log_start_offset = replica.start_offset
    result.gq_durability = DURABILITIES[request.broker.topics.durability(topic, result.index)]
    if request.message.acks != 0:
        pending.wait(topic, result, replica, appended)
