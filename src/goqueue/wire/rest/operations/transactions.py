"""Operations of transactional producers."""

from goqueue.wire.home import EVERYWHERE, TRANSACTION, Way, at
from goqueue.wire.rest import transactions
from goqueue.wire.rest.operation import LARGE_BODY_BYTES_MAX, Resource

TRANSACTIONS = Resource("Transactions")

INIT_PRODUCER = TRANSACTIONS.add(
    "init_producer",
    "POST /producers/init",
    transactions.ProducerReply,
    """Become a producer: of transactions, with a name that outlives it, or without.

    Whoever had the name before is shut out, and a transaction that it left open is aborted.
    """,
    body=transactions.InitProducer,
    errors=(409,),
    home=at(TRANSACTION, "body.transactional_id", otherwise=Way.HERE),
)

PRODUCER_HEARTBEAT = TRANSACTIONS.add(
    "producer_heartbeat",
    "POST /producers/{producer_id}/heartbeat",
    transactions.ProducerHeartbeatReply,
    "Am I still this producer? 409: somebody else is by now. A heartbeat does not make a transaction last longer.",
    path=transactions.ProducerPath,
    body=transactions.ProducerHeartbeat,
    errors=(404, 409),
    home=at(TRANSACTION, "body.transactional_id", otherwise=Way.FIRST),
)

LIST_TRANSACTIONS = TRANSACTIONS.add(
    "list_transactions",
    "GET /transactions",
    transactions.Transactions,
    """Transactions that are open, or all that the node remembers in some state: by transactional id, a page at a time.

    Go on with `cursor`: then each is listed once that stays in its state all the while.
    """,
    query=transactions.TransactionsQuery,
    home=EVERYWHERE,
)

TRANSACTION_STATS = TRANSACTIONS.add(
    "transaction_stats",
    "GET /transactions/stats",
    transactions.TransactionStats,
    "How many transactions are open, and how those ended that were.",
    home=EVERYWHERE,
)

BEGIN_TRANSACTION = TRANSACTIONS.add(
    "begin_transaction",
    "POST /transactions/begin",
    transactions.TransactionBegun,
    """Begin a transaction. 409: one is open already, or somebody else is this producer by now.

    It must end before the timeout that init was told; else it is aborted, and its producer shut out.
    """,
    body=transactions.ProducerBody,
    errors=(404, 409),
    home=at(TRANSACTION, "body.transactional_id", otherwise=Way.FIRST),
)

PUBLISH_IN_TRANSACTION = TRANSACTIONS.add(
    "publish_in_transaction",
    "POST /transactions/publish",
    transactions.TransactionPublished,
    """Publish a message as part of the open transaction: read-committed readers see it when that is committed.

    409: there is no open transaction, or somebody else is this producer by now.
    """,
    body=transactions.TransactionPublish,
    errors=(404, 409, 413),
    body_bytes_max=LARGE_BODY_BYTES_MAX,
    home=at(TRANSACTION, "body.transactional_id", otherwise=Way.FIRST),
)

ADD_PARTITION = TRANSACTIONS.add(
    "add_partition",
    "POST /transactions/add-partition",
    transactions.PartitionAdded,
    "Say that a partition will take part in the open transaction. Publishing says it too.",
    body=transactions.AddPartition,
    errors=(404, 409),
    home=at(TRANSACTION, "body.transactional_id", otherwise=Way.FIRST),
)

COMMIT_TRANSACTION = TRANSACTIONS.add(
    "commit_transaction",
    "POST /transactions/commit",
    transactions.TransactionEnded,
    "Commit: from now on read-committed readers see all of it. 409: there is no open transaction.",
    body=transactions.ProducerBody,
    errors=(404, 409),
    home=at(TRANSACTION, "body.transactional_id", otherwise=Way.FIRST),
)

ABORT_TRANSACTION = TRANSACTIONS.add(
    "abort_transaction",
    "POST /transactions/abort",
    transactions.TransactionEnded,
    "Abort: read-committed readers will never see any of it. 409: there is no open transaction.",
    body=transactions.ProducerBody,
    errors=(404, 409),
    home=at(TRANSACTION, "body.transactional_id", otherwise=Way.FIRST),
)
