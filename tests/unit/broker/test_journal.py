"""Journeys are kept over a restart, found by the trace that a producer brought, and cost nothing but themselves."""

import errno
from typing import Any

import pytest
from structlog.testing import capture_logs

from goqueue.broker.tracing.journal import FLUSH_MS, JOURNEYS
from goqueue.node.tracing import TracingOptions
from goqueue.records.batch import Codec
from goqueue.records.build import build_batch
from goqueue.records.messages import NewMessage
from goqueue.telemetry.trace_ids import Spot
from goqueue.telemetry.traces import Journey
from goqueue.testing import VirtualClock
from tests.unit.broker.queue_node import QueueNode

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
HEADER = ("traceparent", f"00-{TRACE}-{SPAN}-01".encode())


class KeepingNode(QueueNode):
    __test__ = False
    tracing = TracingOptions(stores=True)

    def restarted(self, how: str = "kill", after_ms: int = 0) -> "KeepingNode":
        disk = self.disk
        if how == "stop":
            self.stop()
        else:
            disk.survive_as_kill()
        return KeepingNode(disk, VirtualClock(self.clock.now_ms() + after_ms))


def node_with(topic: str = "orders", partitions: int = 1, **options: str) -> KeepingNode:
    node = KeepingNode()
    node.create(topic, partitions, **options)
    return node


def journey(node: QueueNode, offset: int, topic: str = "orders") -> Journey:
    node.broker.tracing.journal.catch_up()
    return node.broker.tracing.traces.journey(Spot(topic, 0, offset))


def steps(node: QueueNode, offset: int, topic: str = "orders") -> list[str]:
    return [note.step.name for _, note in journey(node, offset, topic).steps]


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_journey_goes_on_after_a_restart(how: str) -> None:
    node = node_with()
    node.put("orders", b"a", b"b")
    (got, _) = node.receive(consumer="anna")
    node.pass_ms(FLUSH_MS)
    node = node.restarted(how)
    assert steps(node, 0) == ["RECEIVED", "PERSISTED", "LEASED"]
    node.ack(got)
    node.pass_ms(FLUSH_MS)
    node = node.restarted(how)
    assert steps(node, 0) == ["RECEIVED", "PERSISTED", "LEASED", "ACKED"]
    assert steps(node, 1) == ["RECEIVED", "PERSISTED", "LEASED"]
    assert journey(node, 0).status == "completed"


def test_a_clean_stop_stores_the_last_second_too() -> None:
    node = node_with()
    node.put("orders", b"a")
    node = node.restarted("stop")
    assert steps(node, 0) == ["RECEIVED", "PERSISTED"]


def test_nothing_is_written_while_nothing_happens() -> None:
    node = node_with()
    node.put("orders", b"a")
    node.pass_ms(FLUSH_MS)
    (replica,) = [each for each in node.replicas.ledgers if each.place == (JOURNEYS, 0)]
    end = replica.end_offset
    assert end > 0
    node.pass_ms(100 * FLUSH_MS)
    assert replica.end_offset == end
    assert node.clock.next_after_ms is None or node.clock.next_after_ms > FLUSH_MS


def test_a_topic_made_again_does_not_inherit_stored_journeys() -> None:
    node = node_with()
    node.put("orders", b"a")
    node.pass_ms(FLUSH_MS)
    node.delete("orders")
    node.create("bills")
    node.put("bills", b"a")
    node.pass_ms(FLUSH_MS)
    node = node.restarted("stop")
    assert steps(node, 0, "bills") == ["RECEIVED", "PERSISTED"]
    assert [note.topic for note in node.broker.journeys.kept() if note.topic == "orders"] == []


def test_a_topic_made_again_while_notes_wait_for_their_turn_does_not_inherit_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = node_with()
    node.put("orders", b"a", b"b")
    journal = node.broker.tracing.journal
    with monkeypatch.context() as others_have_their_turns:
        others_have_their_turns.setattr(journal, "_go_on", lambda: None)
        node.pass_ms(FLUSH_MS)
        node.delete("orders")
        node.create("orders")
    journal.catch_up()
    assert journal.stored > 0
    node.put("orders", b"new")
    node = node.restarted("stop")
    assert (steps(node, 0), steps(node, 1)) == (["RECEIVED", "PERSISTED"], [])


def test_a_full_disk_costs_journeys_and_no_publish() -> None:
    node = node_with()
    node.disk.faults.add("write", errno.ENOSPC, prefix=f"logs/{JOURNEYS}", forever=True)
    with capture_logs() as told:
        for _ in range(3):
            node.put("orders", b"a")
            node.pass_ms(FLUSH_MS)
    assert [each["event"] for each in told].count("journeys not stored") == 1
    assert node.broker.tracing.journal.not_stored == 6
    assert node.values("orders") == [b"a"] * 3
    node.disk.faults.clear()
    node.put("orders", b"b")
    node.pass_ms(FLUSH_MS)


def test_a_node_starts_without_a_place_for_journeys() -> None:
    node = node_with()
    node.put("orders", b"a")
    node = node.restarted("stop")
    disk = node.disk
    node.stop()
    disk.faults.add("open", errno.EIO, prefix=f"logs/{JOURNEYS}", forever=True)
    with capture_logs() as told:
        node = KeepingNode(disk, VirtualClock(node.clock.now_ms()))
    assert JOURNEYS not in {replica.place[0] for replica in node.replicas.ledgers}
    assert "journeys are not stored" in [each["event"] for each in told]
    node.put("orders", b"b")
    assert node.values("orders") == [b"a", b"b"]


# -- traces of producers


def publish(node: QueueNode, *headers: list[tuple[str, bytes | None]], **fields: Any) -> int:
    data = build_batch([(1000, None, b"v", each) for each in headers], **fields)
    offset = node.broker.publisher.publish("orders", 0, memoryview(data))[1].base_offset
    node.commit()
    return offset


@pytest.mark.parametrize("codec", list(Codec))
def test_the_trace_of_a_producer_is_found_in_every_codec(codec: Codec) -> None:
    node = node_with()
    publish(node, [], [HEADER], [("x", b"y")], codec=codec)
    assert journey(node, 1).trace_id == TRACE
    assert node.broker.tracing.traces.spots(TRACE) == [Spot("orders", 0, 1)]
    for offset in (0, 2):
        made = journey(node, offset).trace_id
        assert made != TRACE
        assert node.broker.tracing.traces.spots(made) == [Spot("orders", 0, offset)]
    node = node.restarted("stop")
    assert journey(node, 1).trace_id == TRACE


def test_malformed_traces_are_ignored_and_the_last_one_counts() -> None:
    node = node_with()
    publish(
        node, [("traceparent", b"nonsense")], [("traceparent", b"nonsense"), HEADER], [HEADER, ("traceparent", b"")]
    )
    assert [journey(node, offset).trace_id == TRACE for offset in range(3)] == [False, True, False]


def test_a_trace_may_have_many_messages() -> None:
    node = node_with()
    publish(node, [HEADER], [HEADER])
    publish(node, [HEADER])
    node.broker.tracing.journal.catch_up()
    assert [each.spot.offset for each in node.broker.tracing.traces.of_trace(TRACE)] == [0, 1, 2]


@pytest.mark.parametrize("headers", [[], [HEADER]])
def test_a_delayed_message_keeps_its_trace(headers: list[tuple[str, bytes | None]]) -> None:
    node = node_with()
    node.put("orders", NewMessage(b"late", headers=headers, delay_ms=1000))
    assert (journey(node, 0).trace_id == TRACE) == bool(headers)
    node.pass_ms(3000)
    node.ack(*node.receive())
    before, after = journey(node, 0), journey(node, 1)
    assert before == after
    assert [(spot.offset, note.step.name) for spot, note in before.steps] == [
        (0, "RECEIVED"),
        (0, "SCHEDULED"),
        (0, "PERSISTED"),
        (0, "DUE"),
        (1, "PERSISTED"),
        (1, "LEASED"),
        (1, "ACKED"),
    ]
    assert (before.trace_id == TRACE) == bool(headers)
    node = node.restarted("stop")
    assert journey(node, 1) == before


def test_unknown_traces_are_nothing() -> None:
    node = node_with()
    node.put("orders", b"a")
    made = journey(node, 0).trace_id
    assert node.broker.tracing.traces.spots("f" * 32) == []
    node.delete("orders")
    assert node.broker.tracing.traces.spots(made) == []


def test_a_busy_partition_without_traces_is_only_probed_until_one_is_found() -> None:
    node = node_with(durability="os")
    index = node.broker.tracing.index
    plain = build_batch([(1000, None, bytes(1000), []) for _ in range(60)])

    def busy(batches: int) -> None:
        for _ in range(batches):
            node.broker.publisher.publish("orders", 0, memoryview(bytearray(plain)))
        node.commit()
        node.broker.tracing.journal.catch_up()

    busy(10)
    assert index.skipped == 0
    busy(200)
    assert index.skipped > 0
    node.pass_ms(1000)
    publish(node, [HEADER])
    assert journey(node, node.broker.topics.replica("orders", 0).end_offset - 1).trace_id == TRACE
    skipped = index.skipped
    busy(100)
    assert index.skipped == skipped


def notes_read(node: QueueNode, **bounds: int) -> list[tuple[str, int, int]]:
    """In as many chapters as it takes."""
    journal, found = node.broker.tracing.journal, []
    at, end = bounds.get("first", 0), bounds.get("end", 2**63 - 1)
    while True:
        chapter = journal.read(at, end)
        found += [(note.step.name, note.first, note.last) for _, note in journal.notes_of(chapter)]
        if chapter.next >= min(end, chapter.end):
            return found
        at = chapter.next


@pytest.mark.parametrize("kind", [KeepingNode, QueueNode])
def test_all_that_is_kept_is_read_in_chapters(kind: type[QueueNode], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goqueue.broker.tracing.journal.NOTES_PER_PAGE", 3)
    monkeypatch.setattr("goqueue.broker.tracing.journal.READ_BYTES", 1)
    node = kind()
    node.create("orders", 1)
    for _ in range(5):
        node.put("orders", b"a", b"b")
        node.pass_ms(FLUSH_MS)
    wanted = [(step, first, first + 1) for first in range(0, 10, 2) for step in ("RECEIVED", "PERSISTED")]
    assert notes_read(node) == wanted
    chapter = node.broker.tracing.journal.read(0, 0)
    assert (chapter.batches, chapter.notes, chapter.first) == ([], [], 0)
    half = chapter.end // 2
    assert notes_read(node, end=half) + notes_read(node, first=half) == wanted
    assert notes_read(node, first=chapter.end) == []


def test_what_is_stored_outlives_the_memory_but_not_its_topic() -> None:
    node = node_with()
    node.put("orders", b"a")
    node.pass_ms(FLUSH_MS)
    node.broker.tracing.journeys._notes.clear()
    assert notes_read(node) == [("RECEIVED", 0, 0), ("PERSISTED", 0, 0)]
    node.delete("orders")
    assert notes_read(node) == []
