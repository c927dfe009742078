"""A node starts although its ledgers hold what it cannot read, keeps the rest, and says so."""

from structlog.testing import capture_logs

from goqueue.broker.shards import shard_of_group, shard_of_transaction
from goqueue.machines.deliveries.commands import Place
from goqueue.machines.groups import commands
from goqueue.machines.transactions.commands import InitProducer
from goqueue.model.health import Status
from goqueue.records.batch import check_batch
from goqueue.records.build import NewRecord, build_batch
from tests.brokers import TestBroker

BAD: list[NewRecord] = [(0, b"\xff", b"\xc1", []), (0, b"\xff\xff", None, []), (0, b"orders", b"not a fact", [])]
LEDGERS = {
    "@metadata/0": "metadata-0",
    f"@deliveries.{b'orders'.ljust(16, b'.').hex()}/0": "deliveries",
    f"@groups/{shard_of_group('g')}": f"groups-{shard_of_group('g')}",
    f"@transactions/{shard_of_transaction('tx')}": f"transactions-{shard_of_transaction('tx')}",
    f"@delays.{b'orders'.ljust(16, b'.').hex()}/1": "delays",
    "@schemas/0": "schemas-0",
}
"""Names of logs, and of the coordinators that read them."""


def test_a_node_starts_with_bad_facts_in_every_ledger() -> None:
    node = TestBroker()
    node.create("orders", 2)
    node.publish("orders", b"a")
    delayed = build_batch([(0, None, b"B", [("gq-delay-ms", b"60000")])])
    node.broker.publisher.publish("orders", 1, memoryview(delayed))
    node.ask(node.broker.groups.submit, commands.CommitOffsets("g", (commands.OffsetToCommit("orders", 0, 0),)))
    node.ask(node.broker.transactions.submit, InitProducer("tx", 60_000))
    node.commit()
    node.broker.queues.open(Place("workers", "orders", 0), "earliest", lambda error: None)
    for replica in node.replicas.ledgers:
        replica.append(check_batch(memoryview(build_batch(BAD))), 0)
    node.commit()
    with capture_logs() as told:
        again = TestBroker(node.disk.crashed(), node.clock)
    assert set(again.broker.topics.image.topics) == {"orders"}
    assert again.publish("orders", b"b") == 1
    skipped = again.broker.health.skipped_facts()
    assert set(skipped) == set(LEDGERS.values())
    assert all(2 <= count <= 3 for count in skipped.values()), skipped  # some take any key for one that is not theirs
    assert {each["ledger"] for each in told if each["event"] == "fact skipped"} == set(LEDGERS)
    (damage,) = [check for check in again.broker.health.checks() if check.name == "damage"]
    assert damage.status is Status.WARN
    assert "facts of metadata-0 cannot be read" in damage.message
    assert again.broker.health.is_ready([])
    page, _ = again.broker.metrics.exposition("")
    assert (
        f'goqueue_runtime_facts_skipped_total{{coordinator="metadata-0",node_id="1"}} {skipped["metadata-0"]}'
        in page.decode()
    )


def test_a_node_without_bad_facts_says_so() -> None:
    (damage,) = [check for check in TestBroker().broker.health.checks() if check.name == "damage"]
    assert damage.status is Status.PASS
