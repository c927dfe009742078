"""Journeys of real messages: a collector gets their spans with the right parents, a restart does not forget them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import confluent_kafka as ck
import pytest

from tests.integration.collector import SPANS, Collected, Collector
from tests.integration.process import DEADLINE_S, Node, wait_until
from tests.integration.share_client import ACCEPT, REJECT, Sharer, set_options
from tests.integration.topics import create_topic

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE}-{SPAN}-01".encode()
Traced = tuple[Node, Collector]


@pytest.fixture
def traced(tmp_path: Path) -> Iterator[Traced]:
    """A node that exports to a collector of its own."""
    with Collector() as collector:
        running = Node(tmp_path, "--trace-export", "otlp", "--trace-otlp-endpoint", collector.endpoint(SPANS)).start()
        yield running, collector
        running.clean_up()


def produce(node: Node, topic: str, *headers: bytes | None) -> None:
    producer = ck.Producer({"bootstrap.servers": node.address, "compression.type": "lz4"})
    for header in headers:
        given: list[tuple[str, str | bytes | None]] = [] if header is None else [("traceparent", header)]
        producer.produce(topic, b"v", headers=given, partition=0)
    assert producer.flush(DEADLINE_S) == 0


def consume(node: Node, topic: str, group: str, count: int) -> None:
    consumer = ck.Consumer(
        {"bootstrap.servers": node.address, "group.id": group, "auto.offset.reset": "earliest", "client.id": "reader-7"}
    )
    consumer.subscribe([topic])
    got = 0
    while got < count:
        message = consumer.poll(DEADLINE_S)
        assert message is not None
        assert message.error() is None
        got += 1
    consumer.close()


def get(node: Node, path: str) -> Any:
    with urlopen(f"{node.url}{path}", timeout=DEADLINE_S) as reply:
        return json.loads(reply.read())


def collected(collector: Collector, topic: str, offset: int, event: str) -> Collected:
    """That one span, as soon as it is there."""

    def is_it(span: Collected) -> bool:
        return span.place == (topic, offset or 0, event)

    wait_until(lambda: collector.find(is_it) is not None, f"the span {event} of {topic}/{offset}")
    found = collector.find(is_it)
    assert found is not None
    return found


def test_a_collector_gets_a_produce_and_a_consume_with_the_right_parents(traced: Traced) -> None:
    node, collector = traced
    create_topic(node.address, "orders", 1)
    produce(node, "orders", TRACEPARENT, None)
    consume(node, "orders", "readers", 2)

    publish = collected(collector, "orders", 0, "publish.persisted")
    assert (publish.name, publish.kind) == ("publish orders", "producer")
    assert (publish.trace_id, publish.parent_span_id) == (TRACE, SPAN)
    fetch = collected(collector, "orders", 0, "consume.fetched")
    assert (fetch.trace_id, fetch.parent_span_id) == (TRACE, publish.span_id)
    assert (fetch.kind, fetch.attributes["messaging.client.id"]) == ("consumer", "reader-7")

    alone = collected(collector, "orders", 1, "publish.persisted")
    assert alone.parent_span_id == ""
    assert alone.trace_id not in (TRACE, "0" * 32)
    assert collected(collector, "orders", 1, "consume.fetched").parent_span_id == alone.span_id
    assert collector.services == {"goqueue node-1"}

    # An exporter that is shut down after its first batch.
    produce(node, "orders", TRACEPARENT)
    assert collected(collector, "orders", 2, "publish.persisted").trace_id == TRACE
    assert collector.requests >= 2

    found = get(node, f"/traces/{TRACE}")
    assert {each["offset"] for each in found["spans"]} == {0, 2}
    assert publish.span_id in {each["span_id"] for each in found["spans"]}
    stats = get(node, "/traces/stats")
    assert stats["exporters_enabled"] == ["otlp"]
    assert (stats["spans_failed"], stats["spans_dropped"]) == (0, 0)


def test_deliveries_of_a_queue_are_spans_of_their_own(traced: Traced) -> None:
    node, collector = traced
    create_topic(node.address, "jobs", 1)
    set_options(node, "workers", share_auto_offset_reset="earliest")
    produce(node, "jobs", TRACEPARENT, None)
    worker = Sharer(node, "workers", ["jobs"], is_explicit=True, settings={})
    while len(worker.given) < 2:
        for message in worker.poll():
            worker.acknowledge(ACCEPT if message.offset() == 0 else REJECT, [message])
        worker.commit()
    publish = collected(collector, "jobs", 0, "publish.persisted")
    acked = collected(collector, "jobs", 0, "consume.acked")
    assert (acked.name, acked.trace_id, acked.parent_span_id) == ("deliver jobs", TRACE, publish.span_id)
    assert acked.attributes["messaging.consumer.group.name"] == "workers"
    assert not acked.is_error
    assert collected(collector, "jobs", 1, "consume.rejected").is_error
    letter = collected(collector, "jobs.dlq", 0, "publish.persisted")
    dead = collected(collector, "jobs", 1, "dead_letter.written")
    assert dead.links == [(letter.trace_id, letter.span_id)]
    worker.consumer.close()
    (answer,) = get(node, "/topics/jobs/partitions/0/messages/1/why")["groups"]
    assert answer["state"] == "dead-lettered"


def test_a_collector_that_is_down_costs_spans_and_nothing_else(traced: Traced) -> None:
    node, collector = traced
    create_topic(node.address, "orders", 1)
    collector.is_down = True
    produce(node, "orders", None, None)
    wait_until(lambda: get(node, "/traces/stats")["spans_failed"] >= 2, "a failed export")
    collector.is_down = False
    produce(node, "orders", TRACEPARENT)
    collected(collector, "orders", 2, "publish.persisted")
    node.stop()


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_a_restart_forgets_no_journey(own_node: Node, how: str) -> None:
    create_topic(own_node.address, "orders", 1)
    produce(own_node, "orders", TRACEPARENT)
    wait_until(lambda: get(own_node, "/traces/stats")["notes_stored"] >= 2, "journeys to be stored")
    before = get(own_node, f"/traces/{TRACE}")
    getattr(own_node, how)()
    own_node.start()
    assert get(own_node, f"/traces/{TRACE}") == before


def test_spans_go_to_a_file(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    node = Node(tmp_path, "--trace-export", "file", "--trace-file", str(path)).start()
    try:
        create_topic(node.address, "orders", 1)
        produce(node, "orders", TRACEPARENT)
        node.stop()
        found = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        assert [(each["trace_id"], each["event"], each["offset"]) for each in found] == [
            (TRACE, "publish.persisted", 0)
        ]
    finally:
        node.clean_up()
