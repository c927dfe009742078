"""A crash at every operation while topics are made, changed and deleted: the next start finishes what was begun, what
was answered holds, and no topic ever shows the records of another one that had its name.
"""

from typing import Any

import pytest
from structlog.testing import capture_logs

from goqueue.machines.controller_commands import AddPartitions, CreateTopic, DeleteTopic, SetOptions
from goqueue.model.codes import Code
from goqueue.records.batch import split
from goqueue.records.decode import decode
from goqueue.testing import MemoryDisk
from tests.brokers import TestBroker
from tests.sim.crashes import Trace, images

Found = dict[str, tuple[bytes, int, list[bytes | None]]]


def contents(broker: TestBroker) -> Found:
    """Per topic its id, its partitions and every value in it."""
    found: Found = {}
    for topic in broker.broker.topics.image.topics.values():
        values: list[bytes | None] = []
        for number in range(topic.partitions):
            replica = broker.broker.topics.replica(topic.name, number)
            piece = replica.read(replica.start_offset, 1 << 20, replica.high_watermark)
            if piece is not None:
                values += [record.value for one in split(memoryview(piece.read())) for record in decode(one)]
        found[topic.name] = topic.id, topic.partitions, values
    return found


def logs_on(disk: MemoryDisk) -> set[str]:
    return {f"{topic}/{number}" for topic in disk.list("logs") for number in disk.list(f"logs/{topic}")}


def check_start(image: MemoryDisk, allowed: list[Found]) -> None:
    again = TestBroker(image)
    found = contents(again)
    assert found in allowed
    expected = {f"{name}/{number}" for name, (_, partitions, _) in found.items() for number in range(partitions)}
    assert {log for log in logs_on(image) if not log.startswith("@")} == expected
    assert not again.replicas.failed
    for name in found:
        again.publish(name, b"goes on")
    for name in ("one", "two"):
        if name not in found:
            assert again.ask(again.broker.topics.submit, CreateTopic(name, b"n" * 16, 1)).code is Code.NONE
            assert contents(again)[name] == (b"n" * 16, 1, [])
    again.commit()
    cluster_id = again.broker.identity.cluster_id
    assert TestBroker(image.crashed()).broker.identity.cluster_id == cluster_id


@pytest.mark.second_layer
def test_a_crash_while_topics_change_is_finished_by_the_next_start() -> None:
    trace = Trace()
    broker = TestBroker(trace.disk)
    since = trace.disk.op_count
    states: list[Found] = [contents(broker)]
    promised = 0

    def do(command: Any) -> None:
        nonlocal promised
        assert broker.ask(broker.broker.topics.submit, command).code is Code.NONE
        states.append(contents(broker))
        promised = len(states) - 1
        trace.promise(promised)

    def publish(name: str) -> None:
        nonlocal promised
        broker.publish(name, b"of " + name.encode())
        broker.commit()
        states.append(contents(broker))
        promised = len(states) - 1
        trace.promise(promised)

    do(CreateTopic("one", b"1" * 16, 2))
    publish("one")
    do(CreateTopic("two", b"2" * 16, 1))
    do(AddPartitions("two", 2))
    do(SetOptions("two", {"retention.ms": "5000"}))
    do(DeleteTopic("one"))
    do(CreateTopic("one", b"3" * 16, 1))
    do(DeleteTopic("two"))
    for upto in range(since, trace.disk.op_count + 1):
        allowed = states[trace.last_promise(upto) or 0 :]
        for label, image in images(trace.disk, upto):
            try:
                with capture_logs():
                    check_start(image, allowed)
            except BaseException:
                print(label, *trace.disk.trace()[:upto], sep="\n")
                raise


def test_several_deletions_that_a_crash_left_are_all_finished() -> None:
    disk = MemoryDisk()
    broker = TestBroker(disk)
    for name in ("one", "two", "three"):
        broker.create(name, 2)
    broker.stop()
    image = disk.crashed()
    half = TestBroker(image)
    half.replicas.retire = lambda topic, partitions: lambda: None  # type: ignore[method-assign]  # the power goes before
    half.broker.topics._store.removed = lambda name: None  # type: ignore[method-assign]
    for name in ("one", "three"):
        half.broker.topics.submit(DeleteTopic(name), lambda reply: None)
    half.commit()
    again = TestBroker(image.crashed())
    assert set(contents(again)) == {"two"}
    again.create("one")
    assert contents(again)["one"][2] == []
    third = TestBroker(again.disk.crashed())
    assert set(contents(third)) == {"one", "two"}
