"""Logs that belong to a partition: made when they are first needed, without a sync, and gone with their topic."""

from structlog.testing import capture_logs

from goqueue.machines.controller_commands import DeleteTopic
from goqueue.model.codes import Code
from goqueue.records.decode import decode
from goqueue.replica.companion_names import CompanionName
from goqueue.replica.replica import Replica
from tests.brokers import TOPIC_ID, Parts, TestBroker
from tests.sim.crashes import Trace, images
from tests.unit.replica.test_replica import append, batch

NAME = CompanionName("delays", TOPIC_ID, 3)


def make(parts: Parts, name: CompanionName = NAME, durability: str = "disk") -> Replica:
    return parts.replicas.companion(*name, durability, parts.clock.now_ms())


def values(replica: Replica) -> list[bytes | None]:
    return [record.value for one in replica.batches_from(replica.start_offset) for record in decode(one)]


def test_the_same_companion_is_found_again() -> None:
    parts = Parts()
    made = make(parts)
    assert make(parts) is made
    assert make(parts, NAME._replace(partition=4)) is not made
    assert make(parts, NAME._replace(kind="deliveries")) is not made
    assert made.place == (f"@delays.{TOPIC_ID.hex()}", 3)


def test_looking_for_a_companion_makes_none() -> None:
    parts = Parts()
    assert parts.replicas.companions.find(NAME) is None
    assert parts.replicas.companions.on_disk() == []
    made = make(parts)
    assert parts.replicas.companions.find(NAME) is made


def test_a_start_lists_the_companions_that_are_on_the_disk() -> None:
    parts = Parts()
    other = NAME._replace(kind="deliveries", partition=0)
    append(make(parts), batch(b"x"))
    append(make(parts, other), batch(b"y"))
    parts.disk.make_directory("logs/@delays.nonsense/0")
    parts.disk.make_directory("logs/delays.30313233/0")
    parts.close()
    again = Parts(parts.disk.crashed())
    assert set(again.replicas.companions.on_disk()) == {NAME, other}
    assert values(make(again)) == [b"x"]
    assert values(make(again, other)) == [b"y"]


def test_making_a_companion_waits_for_no_sync() -> None:
    parts = Parts()
    before = len(parts.disk.trace())
    make(parts)
    assert not [line for line in parts.disk.trace()[before:] if line.startswith("sync")]


def test_what_a_companion_acknowledged_survives_every_crash() -> None:
    trace = Trace()
    parts = Parts(trace.disk)
    since = trace.disk.op_count
    replica = make(parts)
    for number in range(3):
        append(replica, batch(b"%d" % number))
        parts.commit()
        assert replica.high_watermark == number + 1
        trace.promise(number + 1)
    for upto in range(since, trace.disk.op_count + 1):
        for label, image in images(trace.disk, upto):
            with capture_logs():
                again = Parts(image)
                found = values(make(again))
            promised = trace.last_promise(upto) or 0
            assert found == [b"0", b"1", b"2"][: len(found)], label
            assert len(found) >= promised, label


def test_what_a_killed_process_made_is_durable_once_the_next_one_acknowledges() -> None:
    """A killed process leaves names that the machine could still lose."""
    parts = Parts()
    append(make(parts), batch(b"of the killed one"))
    killed = parts.disk.crashed(lost=[])
    again = Parts(killed)
    replica = make(again)
    assert values(replica) == [b"of the killed one"]
    append(replica, batch(b"more"))
    again.commit()
    assert replica.high_watermark == 2
    third = Parts(again.disk.crashed(lost=again.disk.unsynced()))
    assert values(make(third)) == [b"of the killed one", b"more"]


def test_companions_go_with_their_topic() -> None:
    broker = TestBroker()
    broker.create("orders", 2)
    broker.create("other")
    ids = {name: broker.broker.topics.image.topics[name].id for name in ("orders", "other")}
    for name, partition in (("orders", 0), ("orders", 1), ("other", 0)):
        for kind in ("deliveries", "delays"):
            append(make(broker, CompanionName(kind, ids[name], partition)), batch(b"x"))
    assert broker.ask(broker.broker.topics.submit, DeleteTopic("orders")).code is Code.NONE
    assert {name.topic_id for name in broker.replicas.companions.on_disk()} == {ids["other"]}
    assert broker.replicas.companions.find(CompanionName("delays", ids["orders"], 0)) is None


def test_a_topic_whose_deletion_a_crash_interrupted_loses_its_companions_at_the_next_start() -> None:
    broker = TestBroker()
    broker.create("orders")
    topic_id = broker.broker.topics.image.topics["orders"].id
    append(make(broker, CompanionName("delays", topic_id, 0)), batch(b"x"))
    broker.commit()
    broker.replicas.companions.retire = lambda topic_id: lambda: None  # type: ignore[method-assign]  # the power goes before
    broker.broker.topics._store.removed = lambda name: None  # type: ignore[method-assign]
    broker.broker.topics.submit(DeleteTopic("orders"), lambda reply: None)
    broker.commit()
    again = TestBroker(broker.disk.crashed())
    assert again.replicas.companions.on_disk() == []


def test_a_companion_has_the_durability_that_was_asked_for_last() -> None:
    parts = Parts()
    replica = make(parts, durability="os")
    append(replica, batch(b"x"))
    assert replica.high_watermark == 1
    assert make(parts, durability="disk") is replica
    append(replica, batch(b"y"))
    assert replica.high_watermark == 1
    parts.commit()
    assert replica.high_watermark == 2
