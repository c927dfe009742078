"""Produce and TxnOffsetCommit of transactions: what they write to joins the transaction first, for good. In version 2
they ask for that; older clients have asked before, perhaps without waiting for the answer."""

from collections.abc import Iterator
from struct import Struct

from goqueue.doors.kafka.handlers import offsets, produce
from goqueue.doors.kafka.refused_batches import sent_by
from goqueue.doors.kafka.request import Request
from goqueue.model.codes import Code
from goqueue.model.transactions import Writer
from goqueue.records.batch import TRANSACTIONAL_BIT
from goqueue.wire.kafka.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from goqueue.wire.kafka.messages.transactions import TxnOffsetCommitRequest

PRODUCE_JOINS_FROM, COMMIT_JOINS_FROM = 12, 5
"""Older clients say AddPartitionsToTxn and AddOffsetsToTxn themselves."""
TOPIC_IDS_FROM = 13
HEAD_BYTES = 61
_attributes = Struct(">21xh").unpack_from
_producer = Struct(">43xqh").unpack_from

REFUSED_AS = {
    # Producers know a lost epoch by this code only.
    Code.PRODUCER_FENCED: Code.INVALID_PRODUCER_EPOCH,
    # They look for another leader, and try again.
    Code.COORDINATOR_NOT_AVAILABLE: Code.NOT_ENOUGH_REPLICAS,
}


def handle_produce(request: Request) -> None:
    message: ProduceRequest = request.message
    if not message.transactional_id:
        produce.handle_produce(request)
        return
    transactions = request.broker.transactions
    places = [place for place, records in _transactional(request) if request.broker.topics.leads(*place)]
    writers = [Writer(message.transactional_id, *_producer(records)) for _, records in _transactional(request)]
    if not places or all(transactions.verify_writer(writers[0], place) is Code.NONE for place in places):
        produce.handle_produce(request)
        return
    if request.version < PRODUCE_JOINS_FROM and not all(transactions.has_joined(writers[0], place) for place in places):
        produce.handle_produce(request)  # which refuses it
        return
    size = _keep(request)

    def enlisted(code: Code) -> None:
        if code is Code.NONE:
            produce.handle_produce(request)
        else:
            _refuse(request, produce.known_as(REFUSED_AS.get(code, code), request.version))

    joins = request.version >= PRODUCE_JOINS_FROM
    transactions.enlisting.add_partitions(writers[0], tuple(dict.fromkeys(places)), size, enlisted, joins=joins)


def _transactional(request: Request) -> Iterator[tuple[tuple[str, int], memoryview]]:
    """Where the transactional batches of a request shall go, and they."""
    for topic in request.message.topic_data:
        name = topic.name
        if request.version >= TOPIC_IDS_FROM:
            found = request.broker.topics.image.by_id(topic.topic_id)
            name = found.name if found else ""
        for data in topic.partition_data:
            records = data.records
            if records is not None and len(records) >= HEAD_BYTES and _attributes(records)[0] & TRANSACTIONAL_BIT:
                yield (name, data.index), records


def _keep(request: Request) -> int:
    """The next read fills the memory in which the records lie. Returns how many bytes they have."""
    kept: list[PartitionProduceData] = [data for topic in request.message.topic_data for data in topic.partition_data]
    for data in kept:
        if data.records is not None and request.connection.is_shared(data.records):
            data.records = memoryview(bytearray(data.records))
    return sum(len(data.records) for data in kept if data.records is not None)


def _refuse(request: Request, code: Code) -> None:
    for place, records in _transactional(request):
        if (sent := sent_by(records)) is not None:
            request.connection.refused_batches.refused(place, sent, code)
    if request.message.acks == 0:
        request.answer_nothing()
        return
    response = ProduceResponse()
    for topic in request.message.topic_data:
        results = [PartitionProduceResponse(data.index, code, base_offset=-1) for data in topic.partition_data]
        response.responses.append(TopicProduceResponse(topic.name, topic.topic_id, results))
    request.answer(response)


def handle_txn_offset_commit(request: Request) -> None:
    message: TxnOffsetCommitRequest = request.message
    writer = Writer(message.transactional_id, message.producer_id, message.producer_epoch)
    transactions = request.broker.transactions
    is_refused = request.version < COMMIT_JOINS_FROM and not transactions.has_joined(writer, message.group_id)
    if is_refused or transactions.verify_writer(writer, message.group_id) is Code.NONE:
        offsets.handle_txn_offset_commit(request)
        return

    def enlisted(code: Code) -> None:
        if code is Code.NONE:
            offsets.handle_txn_offset_commit(request)
        else:
            offsets.refuse_txn_offset_commit(request, code)

    joins = request.version >= COMMIT_JOINS_FROM
    transactions.enlisting.add_group(writer, message.group_id, enlisted, joins=joins)
