"""Metrics on two ways: a collector is sent what a scraper reads."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_CUMULATIVE, Metric
from prometheus_client.parser import text_string_to_metric_families

from goqueue.telemetry.export_metrics_otlp import OtlpMetricsSink
from goqueue.testing import MemoryBroker, broker
from tests.integration.collector import METRICS, Collector
from tests.integration.process import Node, wait_until

PUBLISHED = "goqueue_broker_messages_published_total"
LATENCY = "goqueue_broker_publish_latency_seconds"
Found = dict[tuple[str, frozenset[tuple[str, str]]], float]


def labels(point: Any, **more: str) -> frozenset[tuple[str, str]]:
    return frozenset({**{each.key: each.value.string_value for each in point.attributes}, **more}.items())


def series(metric: Metric) -> Found:
    """As Prometheus would name them."""
    found: Found = {}
    for point in (*metric.gauge.data_points, *metric.sum.data_points):
        found[metric.name, labels(point)] = point.as_double or point.as_int
    for histogram in metric.histogram.data_points:
        upto = 0
        for bound, count in zip((*histogram.explicit_bounds, "+Inf"), histogram.bucket_counts, strict=True):
            upto += count
            found[f"{metric.name}_bucket", labels(histogram, le=str(bound))] = upto
        found[f"{metric.name}_count", labels(histogram)] = histogram.count
        found[f"{metric.name}_sum", labels(histogram)] = histogram.sum
    return found


def scraped(text: str) -> Found:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def ours(found: Found) -> Found:
    return {key: value for key, value in found.items() if key[0].startswith("goqueue_")}


async def work(b: MemoryBroker) -> None:
    await b.create_topic("orders")
    b.slow_disk("60ms")
    publish = asyncio.create_task(b.publish_many("orders", [b"x"] * 5))
    await b.advance("1s")
    await publish
    b.slow_disk("0ms")
    ack, nack, _ = await b.receive("orders", 'quo"ted', max_messages=3)
    await ack.ack()
    await nack.nack(delay="1h")


def test_a_collector_is_sent_what_a_scraper_reads() -> None:
    async def inside(collector: Collector) -> tuple[str, str, int]:
        async with broker() as b:
            started_ms = b.now_ms
            await work(b)
            text = b.broker.metrics.exposition()[0].decode()
            sink = OtlpMetricsSink(collector.endpoint(METRICS), {"service.instance.id": "node-1"}, started_ms)
            snapshot = b.broker.metrics.snapshot()
            await b.publish("orders", b"later")  # which the snapshot does not see any more
            await asyncio.to_thread(lambda: sink.write(snapshot(), b.now_ms))
            sink.close()
            (example,) = b.broker.metrics.meters.published_s["orders"].examples.values()
            return text, b.broker.tracing.identities.trace_id(example.spot), started_ms

    with Collector() as collector:
        text, trace_id, started_ms = asyncio.run(inside(collector))
    (sent,) = collector.metrics
    told: Found = {}
    for metric in sent.values():
        told |= series(metric)
    assert ours(told) == ours(scraped(text))
    assert {"process_resident_memory_bytes", "python_gc_collections_total"} <= sent.keys()
    assert collector.services == {"goqueue node-1"}

    published, latency = sent[PUBLISHED], sent[LATENCY]
    assert published.sum.is_monotonic
    assert published.sum.aggregation_temporality == AGGREGATION_TEMPORALITY_CUMULATIVE
    assert {point.start_time_unix_nano for point in published.sum.data_points} == {started_ms * 1_000_000}
    assert latency.histogram.aggregation_temporality == AGGREGATION_TEMPORALITY_CUMULATIVE
    assert (latency.unit, sent["goqueue_storage_log_size_bytes"].unit, published.unit) == ("s", "By", "")
    (point,) = latency.histogram.data_points
    assert not point.HasField("max")
    (exemplar,) = point.exemplars
    assert exemplar.trace_id.hex() == trace_id
    assert exemplar.as_double == pytest.approx(0.06)


def published_to(collector: Collector, topic: str) -> list[float]:
    key = PUBLISHED, frozenset({"topic": topic, "node_id": "1"}.items())
    return [series(sent[PUBLISHED]).get(key, 0) for sent in list(collector.metrics) if PUBLISHED in sent]


def test_a_node_sends_its_metrics_every_now_and_then_and_when_it_stops(tmp_path: Path) -> None:
    with Collector() as collector:
        where = collector.endpoint(METRICS)
        flags = ("--metrics-export", "otlp", "--metrics-otlp-endpoint", where, "--metrics-export-interval-ms", "1s")
        node = Node(tmp_path, *flags).start()
        try:
            collector.is_down = True  # which costs what is sent meanwhile, and nothing else
            wait_until(lambda: collector.refused > 0, "metrics to be refused")
            with httpx.Client(base_url=node.url) as http:
                http.post("/topics", json={"name": "orders"}).raise_for_status()
                http.post("/topics/orders/messages", json={"messages": [{"value": "a"}] * 7}).raise_for_status()
                collector.is_down = False
                wait_until(lambda: 7 in published_to(collector, "orders"), "metrics to be sent again")
                http.post("/topics/orders/messages", json={"messages": [{"value": "a"}]}).raise_for_status()
            node.stop()
            assert published_to(collector, "orders")[-1] == 8
            assert collector.services == {"goqueue node-1"}
        finally:
            node.clean_up()
