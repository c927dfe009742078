"""Producers and transactions: InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, EndTxn, and what can be asked about
them.
"""

from typing import Any

from goqueue.broker.topics import code_of
from goqueue.broker.transactions import AddGroup, AddPartitions, EndTogether, EndTransaction, InitProducer, State
from goqueue.doors.kafka.request import Request, failure_code
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import Refused
from goqueue.wire.kafka.messages import describe_transactions as wire_describe
from goqueue.wire.kafka.messages import transactions as wire

FENCED_CODE_FROM = {22: 4, 24: 2, 25: 2, 26: 2}
"""Versions from which a client knows PRODUCER_FENCED; before, the same is called INVALID_PRODUCER_EPOCH."""


def _code(request: Request, reply: Any) -> Code:
    code = failure_code(reply) or reply.code
    since = FENCED_CODE_FROM.get(request.header.api_key, 0)
    if code is Code.PRODUCER_FENCED and request.version < since:
        return Code.INVALID_PRODUCER_EPOCH
    return Code(code)


def handle_init_producer_id(request: Request) -> None:
    message: wire.InitProducerIdRequest = request.message
    if message.transactional_id == "":
        request.answer(wire.InitProducerIdResponse(error_code=Code.INVALID_REQUEST))
        return

    def answer(reply: Any) -> None:
        code = _code(request, reply)
        if code is Code.NONE:
            request.answer(wire.InitProducerIdResponse(producer_id=reply.producer_id, producer_epoch=reply.epoch))
        else:
            request.answer(wire.InitProducerIdResponse(error_code=code, producer_epoch=-1))

    request.broker.transactions.submit(
        InitProducer(
            message.transactional_id, message.transaction_timeout_ms, message.producer_id, message.producer_epoch
        ),
        answer,
    )


def handle_add_partitions(request: Request) -> None:
    message: wire.AddPartitionsToTxnRequest = request.message
    places = [(topic.name, number) for topic in message.v3_and_below_topics for number in topic.partitions]
    unknown = {place for place in places if request.broker.topics.end_offset(*place) is None}

    def answer(code: Code) -> None:
        response = wire.AddPartitionsToTxnResponse()
        for topic in message.v3_and_below_topics:
            results = []
            for number in topic.partitions:
                one = Code.UNKNOWN_TOPIC_OR_PARTITION if (topic.name, number) in unknown else code
                if unknown and (topic.name, number) not in unknown:
                    one = Code.OPERATION_NOT_ATTEMPTED
                results.append(wire.AddPartitionsToTxnPartitionResult(number, one))
            response.results_by_topic_v3_and_below.append(wire.AddPartitionsToTxnTopicResult(topic.name, results))
        request.answer(response)

    if unknown:
        answer(Code.UNKNOWN_TOPIC_OR_PARTITION)
        return
    command = AddPartitions(
        message.v3_and_below_transactional_id,
        message.v3_and_below_producer_id,
        message.v3_and_below_producer_epoch,
        tuple(places),
    )
    request.broker.transactions.submit(command, lambda reply: answer(_code(request, reply)))


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

    def answer(reply: Any) -> None:
        code = _code(request, reply)
        response = wire.EndTxnResponse(error_code=code)
        if code is Code.NONE:
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

    def answer(reply: Any) -> None:
        code = _code(request, reply)
        response = wire.EndTxnResponse(error_code=code)
        if not isinstance(reply, GoQueueError):
            response.gq_is_repeated, response.gq_message = reply.is_repeated, reply.message or None
        request.answer(response)

    request.broker.transactions.end_together(command, answer)


def handle_describe_producers(request: Request) -> None:
    response = wire_describe.DescribeProducersResponse()
    for topic in request.message.topics:
        answered = wire_describe.DescribedProducersTopic(topic.name)
        response.topics.append(answered)
        for number in topic.partition_indexes:
            result = wire_describe.DescribedProducersPartition(number)
            answered.partitions.append(result)
            try:
                replica = request.broker.topics.replica(topic.name, number)
                result.active_producers = [wire_describe.ActiveProducer(*view) for view in replica.producers.describe()]
            except GoQueueError as error:
                result.error_code, result.error_message = code_of(error), str(error)
    request.answer(response)


def handle_describe_transactions(request: Request) -> None:
    response = wire_describe.DescribeTransactionsResponse()
    for name in request.message.transactional_ids:
        found = request.broker.transactions.machine.describe(name)
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
    request.answer(response)


def handle_list_transactions(request: Request) -> None:
    message: wire_describe.ListTransactionsRequest = request.message
    response = wire_describe.ListTransactionsResponse()
    try:
        found = request.broker.transactions.listing(
            message.transactional_id_pattern or "",
            states=message.state_filters,
            producer_ids=message.producer_id_filters,
            longer_than_ms=message.duration_filter,
        )
    except Refused as refused:
        request.answer(wire_describe.ListTransactionsResponse(error_code=refused.code))
        return
    known = {state.value for state in State}
    response.unknown_state_filters = [state for state in message.state_filters if state not in known]
    response.transaction_states = [
        wire_describe.ListedTransaction(one.transactional_id, one.producer_id, one.state.value) for one in found
    ]
    request.answer(response)
