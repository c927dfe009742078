"""TransactionService: several messages, in several topics, all or none of them."""

from functools import partial

from goqueue.broker.transactions.listing import ALL, Shown
from goqueue.doors.grpc.call import Call, named, page_of
from goqueue.doors.grpc.convert import timestamp_of
from goqueue.doors.grpc.errors import NOT_FOUND, GrpcError
from goqueue.model.transactions import Producer
from goqueue.wire.grpc import common_pb2
from goqueue.wire.grpc import transaction_pb2 as pb

TIMEOUT_MS = 60_000
TIMEOUT_MS_MAX = 2**31 - 1

Ending = pb.CommitTransactionRequest | pb.AbortTransactionRequest


class TransactionService:
    def __init__(self, call: Call) -> None:
        self._call = call
        self._steps = call.broker.transaction_steps
        self._list = call.broker.transaction_list

    async def init_producer(self, request: pb.InitProducerRequest) -> pb.InitProducerResponse:
        timeout_ms = request.transaction_timeout_ms or TIMEOUT_MS
        if not 0 < timeout_ms <= TIMEOUT_MS_MAX:
            raise GrpcError(f"transaction_timeout_ms is {timeout_ms}, but must be from 1 to {TIMEOUT_MS_MAX}")
        name = request.transactional_id or None
        reply = await self._call.order_by_code(partial(self._steps.init, name, timeout_ms))
        return pb.InitProducerResponse(producer_id=reply.producer_id, epoch=reply.epoch)

    async def begin_transaction(self, request: pb.BeginTransactionRequest) -> pb.BeginTransactionResponse:
        transaction_id: str = await self._call.ask(lambda done: self._steps.begin(_producer(request), done))
        return pb.BeginTransactionResponse(transaction_id=transaction_id)

    async def add_partition(self, request: pb.AddPartitionRequest) -> pb.AddPartitionResponse:
        self._call.partition(named("topic", request.topic), request.partition)
        _: object = await self._call.ask(
            lambda done: self._steps.add_partition(_producer(request), request.topic, request.partition, done)
        )
        return pb.AddPartitionResponse()

    async def commit_transaction(self, request: pb.CommitTransactionRequest) -> pb.CommitTransactionResponse:
        await self._end(request, commit=True)
        return pb.CommitTransactionResponse()

    async def abort_transaction(self, request: pb.AbortTransactionRequest) -> pb.AbortTransactionResponse:
        await self._end(request, commit=False)
        return pb.AbortTransactionResponse()

    async def _end(self, request: Ending, *, commit: bool) -> None:
        _: object = await self._call.ask(lambda done: self._steps.end(_producer(request), commit=commit, on_ended=done))

    async def list_transactions(self, request: pb.ListTransactionsRequest) -> pb.ListTransactionsResponse:
        after, count = page_of(request)
        page = await self._call.in_turns(self._list.paging(ALL, after, count))
        shown = [self._shown(each) for each in page.transactions]
        return pb.ListTransactionsResponse(transactions=shown, next_page_token=page.following or "")

    async def describe_transaction(self, request: pb.DescribeTransactionRequest) -> pb.DescribeTransactionResponse:
        wanted = named("transaction_id", request.transaction_id)
        found = self._list.find(wanted)
        if found is not None:
            shown = Shown(self._list.shown_state(found), found)
            return pb.DescribeTransactionResponse(transaction=self._shown(shown))
        words = f"there is no transaction {wanted!r}"
        raise GrpcError(words, NOT_FOUND, common_pb2.ERROR_CODE_TRANSACTION_NOT_FOUND)

    def _shown(self, shown_as: Shown) -> pb.TransactionInfo:
        state, each = shown_as
        by_topic: dict[str, list[int]] = {}
        for topic, number in each.partitions:
            by_topic.setdefault(topic, []).append(number)
        shown = pb.TransactionInfo(
            transaction_id=self._steps.transaction_id(each),
            transactional_id=each.transactional_id,
            producer_id=each.identity[0],
            epoch=each.identity[1],
            state=state,
            timeout_ms=each.timeout_ms,
            partitions=[
                pb.TransactionPartition(topic=topic, partitions=numbers) for topic, numbers in by_topic.items()
            ],
        )
        began_ms = self._steps.begun_ms(each)
        if began_ms >= 0:
            shown.start_time.CopyFrom(timestamp_of(began_ms))
        return shown


def _producer(request: pb.BeginTransactionRequest | pb.AddPartitionRequest | Ending) -> Producer:
    return Producer(request.producer_id, request.epoch, request.transactional_id or None)
