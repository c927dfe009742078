"""One node as its own cluster: the calls of a store on its own ledger, and itself as the only place."""

import errno
from typing import Any

from structlog.testing import capture_logs

from goqueue.cluster.embedded_store import EmbeddedStore
from goqueue.machines.controller_commands import AddPartitions, CreateTopic, DeleteTopic, SetOptions
from goqueue.model.metadata import ABSENT, Committed, Compare, Conflict, Listing, Put, Step, TopicKey, TopicValue
from goqueue.model.placements import NodeInfo, Placement
from goqueue.model.topics import Image
from goqueue.testing import MemoryDisk
from tests.brokers import TestBroker

NODE = 1


def store_of(broker: TestBroker) -> EmbeddedStore:
    store = broker.assembly._state._store
    assert isinstance(store, EmbeddedStore)
    return store


def listing(broker: TestBroker) -> Listing:
    found: list[Listing] = []
    store_of(broker).list(found.append)
    (one,) = found
    return one


def txn(broker: TestBroker, compares: list[Compare], puts: list[Put]) -> Any:
    found: list[Any] = []
    store_of(broker).txn(Step(tuple(compares), tuple(puts)), found.append)
    broker.commit()
    (one,) = found
    return one


def revision_of(broker: TestBroker, name: str) -> int:
    return next(entry.revision for entry in listing(broker).entries if entry.key == TopicKey(name))


def image(broker: TestBroker) -> Image:
    return broker.broker.topics.image


def test_every_partition_is_here_and_this_node_is_the_only_one() -> None:
    broker = TestBroker()
    broker.create("orders", 2)
    assert dict(image(broker).nodes) == {NODE: NodeInfo(NODE, 0)}
    for placement in image(broker).topics["orders"].placements:
        assert placement._replace(revision=0) == Placement(NODE, 0, 0, (NODE,), (NODE,))
    assert image(broker).leader_of("orders", 1) == NodeInfo(NODE, 0)
    broker.ask(broker.broker.topics.submit, AddPartitions("orders", 5))
    assert len(image(broker).topics["orders"].placements) == 5


def test_every_start_leads_in_an_epoch_of_its_own() -> None:
    """Also one in which nothing is written: what was begun before must not be taken for its own."""
    broker = TestBroker()
    broker.create("orders")
    epochs = []
    for _ in range(4):
        replica = broker.broker.topics.replica("orders", 0)
        epochs.append(replica.leader_epoch)
        assert image(broker).placement("orders", 0).epoch == replica.leader_epoch
        assert {one.leader_epoch for one in broker.replicas.ledgers} == {replica.leader_epoch}
        broker.stop()
        broker = TestBroker(broker.disk.crashed())
    assert epochs == [0, 1, 2, 3]


def test_a_directory_that_never_counted_its_starts_goes_on_above_all_its_epochs() -> None:
    broker = TestBroker()
    broker.create("orders")
    for _ in range(3):
        broker.publish("orders", b"x")
        broker.stop()
        broker = TestBroker(broker.disk.crashed())
    broker.stop()
    before = broker.broker.topics.find_replica("orders", 0)
    assert before is not None
    disk: MemoryDisk = broker.disk.crashed()
    disk.remove("starts")
    disk.sync_directory("")
    again = TestBroker(disk)
    found = again.broker.topics.replica("orders", 0).leader_epoch
    assert found > before.log.state.epochs.latest
    assert image(again).placement("orders", 0).epoch == found


def test_a_disk_without_room_for_the_count_does_not_keep_a_node_from_starting() -> None:
    broker = TestBroker()
    broker.create("orders")
    broker.publish("orders", b"x")
    broker.stop()
    disk = broker.disk.crashed()
    disk.faults.add("write", errno.ENOSPC, prefix="starts", forever=True)
    with capture_logs() as logged:
        again = TestBroker(disk)
    assert "start not counted" in {each["event"] for each in logged}
    replica = again.broker.topics.replica("orders", 0)
    assert (replica.end_offset, replica.leader_epoch) == (1, 1)
    assert again.publish("orders", b"y") == 1
    again.commit()
    third = TestBroker(again.disk.crashed())
    assert third.broker.topics.replica("orders", 0).leader_epoch == 2, "the log has seen the one before"


def test_a_change_is_made_if_what_it_rests_on_is_as_it_was_and_everybody_sees_it() -> None:
    broker = TestBroker()
    broker.create("orders")
    revision = revision_of(broker, "orders")
    value = TopicValue(image(broker).topics["orders"].id, 1, {"retention.ms": "5000"})
    put = Put(TopicKey("orders"), value)
    assert isinstance(txn(broker, [Compare(TopicKey("orders"), revision + 1)], [put]), Conflict)
    assert dict(image(broker).topics["orders"].overrides) == {}
    assert isinstance(txn(broker, [Compare(TopicKey("orders"), revision)], [put]), Committed)
    assert dict(image(broker).topics["orders"].overrides) == {"retention.ms": "5000"}
    assert isinstance(txn(broker, [Compare(TopicKey("orders"), revision)], [put]), Conflict), "it has changed since"
    assert revision_of(broker, "orders") > revision


def test_of_two_that_make_the_same_topic_one_is_told_so() -> None:
    broker = TestBroker()
    puts = [Put(TopicKey("new"), TopicValue(each * 16, 1, {})) for each in (b"1", b"2")]
    outcomes: list[Any] = []
    for put in puts:
        store_of(broker).txn(Step((Compare(TopicKey("new"), ABSENT),), (put,)), outcomes.append)
    broker.commit()
    assert [type(one) for one in outcomes] == [Committed, Conflict]
    assert image(broker).topics["new"].id == b"1" * 16
    assert broker.broker.topics.replica("new", 0).end_offset == 0


def test_nobody_is_shown_a_change_before_it_is_durable() -> None:
    broker = TestBroker()
    shown: list[Any] = []
    step = Step((Compare(TopicKey("new"), ABSENT),), (Put(TopicKey("new"), TopicValue(b"1" * 16, 1, {})),))
    store_of(broker).txn(step, shown.append)
    assert (shown, dict(image(broker).topics)) == ([], {})
    broker.commit()
    assert [type(one) for one in shown] == [Committed]
    assert set(image(broker).topics) == {"new"}


def test_a_listing_has_the_same_image_as_what_was_told_one_by_one() -> None:
    broker = TestBroker()
    broker.create("orders", 2)
    broker.create("clicks", 3)
    broker.ask(broker.broker.topics.submit, SetOptions("clicks", {"retention.ms": "7000"}))
    broker.ask(broker.broker.topics.submit, AddPartitions("orders", 4))
    broker.ask(broker.broker.topics.submit, DeleteTopic("clicks"))
    broker.ask(broker.broker.topics.submit, CreateTopic("clicks", b"n" * 16, 1))
    told = {name: (one.id, one.partitions, dict(one.overrides)) for name, one in image(broker).topics.items()}
    broker.stop()
    again = TestBroker(broker.disk.crashed())
    found = {name: (one.id, one.partitions, dict(one.overrides)) for name, one in image(again).topics.items()}
    assert found == told
    keys = [entry.key for entry in listing(again).entries]
    assert len(keys) == len(set(keys)) == 1 + 2 + 5
