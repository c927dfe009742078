"""Producers and transactions: several messages, in several topics, all or none of them."""

from functools import partial

from goqueue.broker.transactions.listing import ALL, OPEN
from goqueue.doors.http.as_json import record_of
from goqueue.doors.http.call import Call
from goqueue.doors.http.errors import NOT_FOUND, HttpError
from goqueue.doors.http.operation import Handlers
from goqueue.doors.http.permissions import (
    DESCRIBES_TRANSACTIONS,
    JOINS_TRANSACTION,
    PUBLISHES_IN_TRANSACTION,
    WRITES_TRANSACTION,
)
from goqueue.machines.transactions.facts import TransactionChanged
from goqueue.model.errors import GoQueueError
from goqueue.model.ledgers import LedgerKind
from goqueue.model.moments import format_moment
from goqueue.model.transactions import Placed, Producer
from goqueue.wire.rest import transactions as rest
from goqueue.wire.rest.operations import transactions as operations

TIMEOUT_MS = 60_000

transactions = Handlers(rests_on=(LedgerKind.TRANSACTIONS,))


@transactions.handles(operations.INIT_PRODUCER, WRITES_TRANSACTION)
async def init_producer(call: Call, body: rest.InitProducer) -> rest.ProducerReply:
    timeout_ms = TIMEOUT_MS if body.transaction_timeout_ms is None else body.transaction_timeout_ms
    reply = await call.order_by_code(partial(call.broker.transaction_steps.init, body.transactional_id, timeout_ms))
    return rest.ProducerReply(producer_id=reply.producer_id, epoch=reply.epoch)


@transactions.handles(operations.PRODUCER_HEARTBEAT, WRITES_TRANSACTION)
async def producer_heartbeat(
    call: Call, path: rest.ProducerPath, body: rest.ProducerHeartbeat
) -> rest.ProducerHeartbeatReply:
    transactions = call.broker.transactions
    known = transactions.of_producer(path.producer_id)
    if known is None and body.transactional_id is None and transactions.ids.was_given(path.producer_id):
        return rest.ProducerHeartbeatReply(status="ok")  # one without transactions: nobody else can be it
    epoch = body.epoch
    if epoch is None:
        epoch = 0 if known is None else known.epoch
    call.broker.transaction_steps.find(Producer(path.producer_id, epoch, body.transactional_id))
    return rest.ProducerHeartbeatReply(status="ok")


@transactions.handles(operations.LIST_TRANSACTIONS, DESCRIBES_TRANSACTIONS)
async def list_transactions(call: Call, query: rest.TransactionsQuery) -> rest.Transactions:
    listed = call.broker.transaction_list
    page = await call.in_turns(listed.paging(query.state, query.cursor, query.limit, query.skip))
    counts = await call.in_turns(listed.counting())
    wanted = OPEN if query.state is None else counts if query.state == ALL else (query.state,)
    return rest.Transactions(
        transactions=[_shown(call, *each) for each in page.transactions],
        count=len(page.transactions),
        total=sum(counts[state] for state in wanted),
        next=page.following,
    )


def _shown(call: Call, state: str, each: TransactionChanged) -> rest.Transaction:
    steps = call.broker.transaction_steps
    began_ms = steps.begun_ms(each)
    return rest.Transaction(
        transaction_id=steps.transaction_id(each),
        transactional_id=each.transactional_id,
        producer_id=each.identity[0],
        epoch=each.identity[1],
        state=state,
        start_time=None if began_ms < 0 else format_moment(began_ms),
        timeout_ms=each.timeout_ms,
        partitions=[rest.TransactionPartition(topic=topic, partition=number) for topic, number in each.partitions],
    )


@transactions.handles(operations.TRANSACTION_STATS, DESCRIBES_TRANSACTIONS)
async def transaction_stats(call: Call) -> rest.TransactionStats:
    states = await call.in_turns(call.broker.transaction_list.counting())
    active = sum(count for state, count in states.items() if state in OPEN)
    by_state = dict(sorted(states.items()))
    committed, aborted = call.broker.transactions.committed, call.broker.transactions.aborted
    return rest.TransactionStats(
        active_transactions=active,
        committed_total=committed,
        aborted_total=aborted,
        transactional_producers=states.total(),
        transactions_by_state=by_state,
    )


@transactions.handles(operations.BEGIN_TRANSACTION, WRITES_TRANSACTION, rests_on=(LedgerKind.TRANSACTIONS,))
async def begin_transaction(call: Call, body: rest.ProducerBody) -> rest.TransactionBegun:
    transaction_id: str = await call.ask(lambda done: call.broker.transaction_steps.begin(_producer(body), done))
    return rest.TransactionBegun(transaction_id=transaction_id, status="begun")


def _producer(body: rest.ProducerBody | rest.TransactionPublish) -> Producer:
    return Producer(body.producer_id, body.epoch, body.transactional_id)


@transactions.handles(operations.PUBLISH_IN_TRANSACTION, PUBLISHES_IN_TRANSACTION)
async def publish_in_transaction(call: Call, body: rest.TransactionPublish) -> rest.TransactionPublished:
    if body.partition == -1:
        body.partition = None
    message = record_of(body, call.now_ms)
    await call.topic_to_publish_to(body.topic)
    placed: Placed = await call.ask(
        lambda done: call.broker.transaction_steps.publish(_producer(body), body.topic, message, body.sequence, done)
    )
    return rest.TransactionPublished(
        partition=placed.partition,
        offset=placed.offset,
        duplicate=placed.is_duplicate,
        durability=placed.durability,
    )


@transactions.handles(operations.ADD_PARTITION, JOINS_TRANSACTION)
async def add_partition(call: Call, body: rest.AddPartition) -> rest.PartitionAdded:
    if body.partition >= call.topic(body.topic).partitions:
        raise HttpError(
            NOT_FOUND, "UNKNOWN_TOPIC_OR_PARTITION", f"there is no partition {body.partition} of {body.topic!r}"
        )
    _: GoQueueError | None = await call.ask(
        lambda done: call.broker.transaction_steps.add_partition(_producer(body), body.topic, body.partition, done)
    )
    return rest.PartitionAdded(status="added", topic=body.topic, partition=body.partition)


@transactions.handles(operations.COMMIT_TRANSACTION, WRITES_TRANSACTION)
async def commit_transaction(call: Call, body: rest.ProducerBody) -> rest.TransactionEnded:
    return await _end(call, body, commit=True)


@transactions.handles(operations.ABORT_TRANSACTION, WRITES_TRANSACTION)
async def abort_transaction(call: Call, body: rest.ProducerBody) -> rest.TransactionEnded:
    return await _end(call, body, commit=False)


async def _end(call: Call, body: rest.ProducerBody, *, commit: bool) -> rest.TransactionEnded:
    _: GoQueueError | None = await call.ask(
        lambda done: call.broker.transaction_steps.end(_producer(body), commit=commit, on_ended=done)
    )
    return rest.TransactionEnded(status="committed" if commit else "aborted", committed=commit, aborted=not commit)
