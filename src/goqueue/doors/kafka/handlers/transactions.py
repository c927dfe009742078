"""Producers and transactions: InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, EndTxn, WriteTxnMarkers, and what
can be asked about them.
"""

from collections.abc import Callable
from functools import partial

from goqueue.broker.durable import confirm_appended
from goqueue.broker.transactions.listing import Wanted
from goqueue.doors.kafka.request import Request, failure_code
from goqueue.machines.transactions.commands import (
    AddGroup,
    AddPartitions,
    CodeReply,
    EndTogether,
    EndTransaction,
    InitProducer,
    ProducerReply,
    TogetherReply,
)
from goqueue.machines.transactions.facts import State, TransactionChanged
from goqueue.model.codes import Code
from goqueue.model.error_codes import code_of
from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import Refused
from goqueue.model.transactions import Hanging, Writer
from goqueue.replica.replica import Replica
from goqueue.wire.kafka.messages import describe_transactions as wire_describe
from goqueue.wire.kafka.messages import transactions as wire

FENCED_CODE_FROM = {22: 4, 24: 2, 25: 2, 26: 2}
"""Versions from which a client knows PRODUCER_FENCED; before, the same is called INVALID_PRODUCER_EPOCH."""
MANY_FROM_VERSION, ABORTABLE_FROM_VERSION = 4, 5


def _code(request: Request, reply: CodeReply | ProducerReply | TogetherReply | GoQueueError) -> Code:
    code = failure_code(reply) if isinstance(reply, GoQueueError) else reply.code
    since = FENCED_CODE_FROM.get(request.header.api_key, 0)
    if code is Code.PRODUCER_FENCED and request.version < since:
        return Code.INVALID_PRODUCER_EPOCH
    return code


def handle_init_producer_id(request: Request) -> None:
    message: wire.InitProducerIdRequest = request.message
    if message.transactional_id == "":
        request.answer(wire.InitProducerIdResponse(error_code=Code.INVALID_REQUEST))
        return

    def answer(reply: ProducerReply | GoQueueError) -> None:
        code = _code(request, reply)
        if code is not Code.NONE or isinstance(reply, GoQueueError):
            request.answer(wire.InitProducerIdResponse(error_code=code, producer_epoch=-1))
        else:
            request.answer(wire.InitProducerIdResponse(producer_id=reply.producer_id, producer_epoch=reply.epoch))

    request.broker.transactions.submit(
        InitProducer(
            message.transactional_id, message.transaction_timeout_ms, message.producer_id, message.producer_epoch
        ),
        answer,
    )


def handle_add_partitions(request: Request) -> None:
    message: wire.AddPartitionsToTxnRequest = request.message
    if request.version >= MANY_FROM_VERSION:
        _add_partitions_of_many(request, message.transactions)
        return
    one = wire.AddPartitionsToTxnTransaction(
        message.v3_and_below_transactional_id,
        message.v3_and_below_producer_id,
        message.v3_and_below_producer_epoch,
        topics=message.v3_and_below_topics,
    )
    _add_partitions(
        request,
        one,
        lambda results: request.answer(wire.AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)),
    )


def _add_partitions_of_many(request: Request, transactions: list[wire.AddPartitionsToTxnTransaction]) -> None:
    response = wire.AddPartitionsToTxnResponse()

    def collect(name: str, results: list[wire.AddPartitionsToTxnTopicResult]) -> None:
        response.results_by_transaction.append(wire.AddPartitionsToTxnResult(name, results))
        if len(response.results_by_transaction) == len(transactions):
            request.answer(response)

    if not transactions:
        request.answer(response)

    def take(one: wire.AddPartitionsToTxnTransaction) -> None:
        if one.verify_only:
            collect(one.transactional_id, _verified(request, one))
        else:
            _add_partitions(request, one, partial(collect, one.transactional_id))

    request.each(transactions, take)


def _add_partitions(
    request: Request,
    transaction: wire.AddPartitionsToTxnTransaction,
    on_results: Callable[[list[wire.AddPartitionsToTxnTopicResult]], None],
) -> None:
    places = [(topic.name, number) for topic in transaction.topics for number in topic.partitions]
    unknown = {place for place in places if not request.broker.topics.exists(*place)}
    if unknown:
        on_results(
            _results(
                transaction,
                lambda place: Code.UNKNOWN_TOPIC_OR_PARTITION if place in unknown else Code.OPERATION_NOT_ATTEMPTED,
            )
        )
        return

    def decided(reply: CodeReply | GoQueueError) -> None:
        code = _code(request, reply)
        on_results(_results(transaction, lambda place: code))

    command = AddPartitions(
        transaction.transactional_id, transaction.producer_id, transaction.producer_epoch, tuple(places)
    )
    request.broker.transactions.submit(command, decided)


def _verified(
    request: Request, transaction: wire.AddPartitionsToTxnTransaction
) -> list[wire.AddPartitionsToTxnTopicResult]:
    """Asked by brokers that were sent a batch: is it part of a transaction here?"""
    writer = Writer(transaction.transactional_id, transaction.producer_id, transaction.producer_epoch)
    outside = Code.TRANSACTION_ABORTABLE if request.version >= ABORTABLE_FROM_VERSION else Code.INVALID_TXN_STATE

    def verdict(place: tuple[str, int]) -> Code:
        code = request.broker.transactions.verify_writer(writer, place)
        return outside if code is Code.INVALID_TXN_STATE else code

    return _results(transaction, verdict)


def _results(
    transaction: wire.AddPartitionsToTxnTransaction, code_of_place: Callable[[tuple[str, int]], Code]
) -> list[wire.AddPartitionsToTxnTopicResult]:
    return [
        wire.AddPartitionsToTxnTopicResult(
            topic.name,
            [
                wire.AddPartitionsToTxnPartitionResult(number, code_of_place((topic.name, number)))
                for number in topic.partitions
            ],
        )
        for topic in transaction.topics
    ]


def handle_add_offsets(request: Request) -> None:
    message: wire.AddOffsetsToTxnRequest = request.message
    command = AddGroup(message.transactional_id, message.producer_id, message.producer_epoch, message.group_id)
    request.broker.transactions.submit(
        command, lambda reply: request.answer(wire.AddOffsetsToTxnResponse(error_code=_code(request, reply)))
    )


def handle_end_txn(request: Request) -> None:
    message: wire.EndTxnRequest = request.message
    if message.gq_together is not None:
        _end_together(request, message.gq_together)
        return
    command = EndTransaction(
        message.transactional_id,
        message.producer_id,
        message.producer_epoch,
        message.committed,
        bumps_epoch=request.version >= 5,
    )

    def answer(reply: ProducerReply | GoQueueError) -> None:
        code = _code(request, reply)
        response = wire.EndTxnResponse(error_code=code)
        if code is Code.NONE and not isinstance(reply, GoQueueError):
            response.producer_id, response.producer_epoch = reply.producer_id, reply.epoch
        request.answer(response)

    request.broker.transactions.submit(command, answer)


def _end_together(request: Request, together: list[wire.OpenTransaction]) -> None:
    message: wire.EndTxnRequest = request.message
    command = EndTogether(
        message.transactional_id,
        message.gq_mark,
        message.committed,
        tuple((one.transactional_id, one.producer_id, one.producer_epoch) for one in together),
        message.gq_forgets,
    )

    def answer(reply: TogetherReply | GoQueueError) -> None:
        code = _code(request, reply)
        response = wire.EndTxnResponse(error_code=code)
        if not isinstance(reply, GoQueueError):
            response.gq_is_repeated, response.gq_message = reply.is_repeated, reply.message or None
        request.answer(response)

    request.broker.transactions.end_together(command, answer)


def handle_write_markers(request: Request) -> None:
    """Sent by administrators for transactions that hang: their coordinator does not know them any more."""
    message: wire.WriteTxnMarkersRequest = request.message
    response = wire.WriteTxnMarkersResponse()
    results = []
    for marker in message.markers:
        answered = wire.WritableTxnMarkerResult(marker.producer_id)
        response.markers.append(answered)
        for topic in marker.topics:
            of_topic = wire.WritableTxnMarkerTopicResult(topic.name)
            answered.topics.append(of_topic)
            of_topic.partitions = [wire.WritableTxnMarkerPartitionResult(each) for each in topic.partition_indexes]
            results += [(marker, (topic.name, result.partition_index), result) for result in of_topic.partitions]
    waiting = len(results) + 1

    def ended(result: wire.WritableTxnMarkerPartitionResult | None, code: Code) -> None:
        nonlocal waiting
        waiting -= 1
        if result is not None:
            result.error_code = code
        if not waiting:
            request.answer(response)

    def end(one: tuple[wire.WritableTxnMarker, tuple[str, int], wire.WritableTxnMarkerPartitionResult]) -> None:
        marker, place, result = one
        hanging = Hanging(
            marker.producer_id, marker.producer_epoch, marker.coordinator_epoch, marker.transaction_result
        )
        request.broker.transactions.end_hanging(hanging, place, partial(ended, result))

    request.each(results, end, partial(ended, None, Code.NONE))


def handle_describe_producers(request: Request) -> None:
    """Of a batch that could still be lost nobody is told. Who reads a log that fails meanwhile is told of that."""
    response, replicas = _described_producers(request)

    def confirmed(error: GoQueueError | None) -> None:
        request.answer(response if error is None else _described_producers(request)[0])

    confirm_appended(replicas, confirmed)


def _described_producers(request: Request) -> tuple[wire_describe.DescribeProducersResponse, list[Replica]]:
    response = wire_describe.DescribeProducersResponse()
    replicas = []
    for topic in request.message.topics:
        answered = wire_describe.DescribedProducersTopic(topic.name)
        response.topics.append(answered)
        for number in topic.partition_indexes:
            result = wire_describe.DescribedProducersPartition(number)
            answered.partitions.append(result)
            try:
                replica = request.broker.topics.replica(topic.name, number)
                result.active_producers = [wire_describe.ActiveProducer(*view) for view in replica.producers.describe()]
                replicas.append(replica)
            except GoQueueError as error:
                result.error_code, result.error_message = code_of(error), str(error)
    return response, replicas


def handle_describe_transactions(request: Request) -> None:
    response = wire_describe.DescribeTransactionsResponse()

    def describe(name: str) -> None:
        try:
            found = request.broker.transactions.describe(name)
        except GoQueueError as error:
            response.transaction_states.append(wire_describe.DescribedTransaction(code_of(error), name))
            return
        if found is None:
            described = wire_describe.DescribedTransaction(Code.TRANSACTIONAL_ID_NOT_FOUND, name)
        else:
            by_topic: dict[str, wire_describe.DescribedTransactionTopic] = {}
            for topic, number in found.partitions:
                by_topic.setdefault(topic, wire_describe.DescribedTransactionTopic(topic)).partitions.append(number)
            described = wire_describe.DescribedTransaction(
                Code.NONE,
                name,
                found.state.value,
                found.timeout_ms,
                found.start_ms,
                found.producer_id,
                found.epoch,
                list(by_topic.values()),
            )
        response.transaction_states.append(described)

    request.each(request.message.transactional_ids, describe, lambda: request.answer(response))


def handle_list_transactions(request: Request) -> None:
    message: wire_describe.ListTransactionsRequest = request.message
    response = wire_describe.ListTransactionsResponse()
    wanted = Wanted(
        frozenset(message.state_filters),
        frozenset(message.producer_id_filters),
        message.duration_filter,
        message.transactional_id_pattern or "",
    )
    try:
        pages = request.broker.transaction_list.walking(wanted)
    except Refused as refused:
        request.answer(wire_describe.ListTransactionsResponse(error_code=refused.code))
        return
    known = {state.value for state in State}
    response.unknown_state_filters = [state for state in message.state_filters if state not in known]

    def take(page: list[TransactionChanged], then: Callable[[], object]) -> None:
        response.transaction_states += [
            wire_describe.ListedTransaction(one.transactional_id, one.producer_id, one.state.value) for one in page
        ]
        then()

    request.walk(pages, take, lambda: request.answer(response))
