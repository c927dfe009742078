"""What /metrics tells: all that it says it can, exactly, within bounds, in both formats."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics import exposition as openmetrics_exposition
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families as parse_text

from goqueue.broker.loop_watch import LoopWatch
from goqueue.broker.metrics.catalogue import COUNTER, HISTOGRAM, METRICS
from goqueue.broker.metrics.metrics import Metrics
from goqueue.broker.metrics.sources import MetricsOptions
from goqueue.broker.reading.wants import Limits, Want
from goqueue.client.grpc import GrpcClient
from goqueue.doors.kafka.fetch_sessions import OF_CONNECTION_MAX
from goqueue.machines.groups import commands
from goqueue.model.errors import GoQueueError
from goqueue.ports.copying import Copying
from goqueue.runtime.standby import StandbyCounts
from goqueue.telemetry.histogram import LATENCY_S
from goqueue.telemetry.meters import Meters
from goqueue.testing import MemoryBroker, broker
from tests.unit.doors.http.door_client import Client, served
from tests.unit.doors.kafka.fetch_readers import open_sessions

parse_openmetrics: Any = openmetrics_parser.text_string_to_metric_families  # without types
generate_openmetrics: Any = openmetrics_exposition.generate_latest

ROOT = Path(__file__).parents[3]
PUBLISHED = "goqueue_broker_messages_published_total"
Found = dict[tuple[str, frozenset[tuple[str, str]]], float]


def read(text: str, *, openmetrics: bool = False) -> Found:
    parse = parse_openmetrics if openmetrics else parse_text
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in parse(text)
        for sample in family.samples
        if family.name.startswith("goqueue_")
    }


def value(b: MemoryBroker, name: str, **labels: str) -> float:
    content, _ = b.broker.metrics.exposition()
    return read(content.decode())[name, frozenset({**labels, "node_id": "1"}.items())]


def bounded(b: MemoryBroker, **options: Any) -> Metrics:
    metrics = b.broker.metrics
    return Metrics(metrics._sources, metrics._identify, 1, MetricsOptions(**options))


def numbers(metrics: Metrics, name: str) -> dict[tuple[str, ...], float]:
    return metrics.page()._numbers[name]


def in_memory(test: Callable[[MemoryBroker], Awaitable[None]]) -> Callable[[], None]:
    def run() -> None:
        async def inside() -> None:
            async with broker() as b:
                await test(b)

        asyncio.run(inside())

    run.__name__ = test.__name__
    return run


# -- everything is set by something


async def queue_work(b: MemoryBroker) -> None:
    await b.create_topic("orders", partitions=2, attempts_max=2)
    await b.publish_many("orders", [b"a", b"b", b"c", b"d", b"e", {"value": b"f", "priority": "high"}])
    await b.publish("orders", b"soon", delay="1s")
    later = await b.publish("orders", b"never", delay="1h")
    await b.cancel("orders", later.partition, later.offset)
    await b.publish("orders", b"waits", delay="2h")
    await b.publish("orders", b"short", ttl="1s")
    ack, nack, reject, *_, leave = await b.receive("orders", lease="10s", max_messages=5)
    await ack.ack()
    await nack.nack(delay="1h")
    await reject.reject("no good")
    await leave.extend("15s")
    await b.advance("1m")
    await b.receive("orders", lease="1h", max_messages=1)
    await b.create_topic("idle")
    assert await b.receive("idle", wait="0s") == []


async def groups_and_transactions(b: MemoryBroker, http: httpx.AsyncClient) -> None:
    async def post(path: str, **body: Any) -> Any:
        reply = await http.post(path, json=body)
        assert reply.status_code < 300, f"{path}: {reply.text}"
        return reply.json()

    await post("/groups/readers/join", client_id="a", topics=["orders"])
    await post("/groups/alone/offsets", offsets={"orders": {"0": 1}})
    late = commands.CommitOffsets("readers", (commands.OffsetToCommit("orders", 0, 0),), 99, "nobody")
    b.broker.groups.submit(late, lambda reply: None)
    for name, end in (("x", "commit"), ("y", "abort"), ("z", None)):
        who = {**await post("/producers/init", transactional_id=name), "transactional_id": name}
        await post("/transactions/begin", **who)
        await post("/transactions/publish", topic="orders", value="t", **who)
        if end is not None:
            await post(f"/transactions/{end}", **who)
    await post("/topics/orders/dlq/redrive")
    await schemas(b, http)


async def schemas(b: MemoryBroker, http: httpx.AsyncClient) -> None:
    registered = {"schema": '{"type": "object"}', "schemaType": "JSON"}
    assert (await http.post("/subjects/checked-value/versions", json=registered)).status_code == 200
    await b.create_topic("checked", schema_validation="reject")
    await b.publish("checked", b"{}")
    with pytest.raises(GoQueueError):
        await b.publish("checked", b"[]")


def listeners(meters: Meters) -> None:
    """Of a node with a listener for TLS, and one that others can reach without."""
    meters.certificates, meters.handshakes = lambda: {"kafka/safe": 86_400.0}, {"done": 1}
    meters.insecure_listeners = 1
    meters.throttled("request_rate", 1500)


WAITING = {
    "goqueue_broker_acknowledgements_pending",
    "goqueue_storage_log_start_offset",
    "goqueue_storage_segments_created_total",
    "goqueue_storage_segments_deleted_total",
    "goqueue_storage_compaction_runs_total",
    "goqueue_storage_compaction_bytes_reclaimed_total",
    "goqueue_consumer_group_leaves_total",
    "goqueue_cluster_offline_partitions",
    "goqueue_cluster_under_min_isr_partitions",
    "goqueue_cluster_under_replicated_partitions",
    "goqueue_cluster_preferred_leader_imbalance",
    "goqueue_cluster_leader_elections_total",
    "goqueue_cluster_unclean_leader_elections_total",
    "goqueue_cluster_isr_shrinks_total",
    "goqueue_cluster_isr_expands_total",
}
"""Those that a node by itself, or a short test, leaves at zero: see below, and tests/unit/deploy."""


def test_everything_in_the_catalogue_is_set_by_something() -> None:
    """In the earlier implementation 82 of 98 metrics never were."""

    async def inside() -> dict[str, float]:
        async with (
            broker(http=True, kafka=True, grpc=True) as b,
            httpx.AsyncClient(base_url=b.http) as http,
            GrpcClient(b.grpc) as grpc,
        ):
            b.broker.health.cluster.copying = lambda: Copying(3, 1, 500, {2: 7})  # of a node that follows another
            b.broker.health.cluster.standbys = lambda: StandbyCounts(33, 1, 20_000)
            b.broker.health.cluster.access_age_s = lambda: 7.0
            listeners(b.broker.metrics.meters)
            await queue_work(b)
            await b.create_topic("shared", fair_by="header")
            await b.publish("shared", b"x", headers={"gq-fairness-key": b"anna"})
            await b.receive("shared", lease="1h")
            await grpc.publish("orders", b"x")
            following = grpc.consume("orders")
            await anext(following)
            await groups_and_transactions(b, http)
            await b.advance("1s")
            b.broker.fetcher.fetch([Want("orders", 0, 0, 1000)], Limits(1, 1000, 0), lambda got: None)
            watch = LoopWatch(b.broker.clock, b.broker.metrics.meters.loop_lag_s)
            watch.start()
            host, port = b.kafka.split(":")
            _, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            await writer.drain()
            writer.close()
            consumer = await open_sessions(host, int(port), OF_CONNECTION_MAX + 1)
            replicas = b._running.node.replicas if b._running else None
            assert replicas is not None
            replicas.disk_reserve_bytes = 1
            await b.advance("1s")
            watch.stop()
            b.broker.topics.replica("orders", 1).log.damaged_batches += 1
            b.broker.topics.replica("orders", 1).log.report.miss(0, 1)
            replicas.made_anew.append("orders/1")
            replicas.directory.room.refused_appends += 1
            first = next(iter(b.broker.health._coordinators))
            first._ledger.unread.total += 1
            first._faults.count += 1
            before = {name: number async for name, number in _sums(http)}
            consumer.close()
            b.slow_disk("1h")
            publish = asyncio.create_task(b.publish("orders", b"x"))
            create = asyncio.create_task(b.create_topic("more"))  # in a ledger, which fails as any log does
            b.faults.add("sync", 5, forever=True)
            await b.advance("2h")
            for task in (publish, create):
                with pytest.raises(GoQueueError):
                    await task
            after = {name: number async for name, number in _sums(http)}
            return {name: max(before.get(name, 0), after.get(name, 0)) for name in before | after}

    found = asyncio.run(inside())
    expected = {f"{each.name}_count" if each.kind == HISTOGRAM else each.name for each in METRICS}
    assert {name for name in expected if not found.get(name)} <= WAITING
    assert {name for name in found if not re.search("_(bucket|sum)$", name)} == expected


async def _sums(http: httpx.AsyncClient) -> Any:
    sums: dict[str, float] = {}
    for (name, _), number in read((await http.get("/metrics")).text).items():
        sums[name] = sums.get(name, 0) + number
    for name, number in sums.items():
        yield name, number


@in_memory
async def test_starts_of_logs_and_waiting_publishes(b: MemoryBroker) -> None:
    await b.create_topic("orders")
    await b.publish_many("orders", [b"x"] * 10)
    b.broker.topics.replica("orders", 0).delete_before(4)
    assert value(b, "goqueue_storage_log_start_offset", topic="orders") == 4
    b.slow_disk("1s")
    replica = b.broker.topics.replica("orders", 0)
    b.broker.publisher.acknowledgements.wait(replica, 11, 1000, lambda code: None)
    assert value(b, "goqueue_broker_acknowledgements_pending") == 1


# -- exactly


@in_memory
async def test_a_delayed_message_is_published_once(b: MemoryBroker) -> None:
    """It takes two places in the log; a counter must neither count both nor fall in between."""
    await b.create_topic("orders")
    await b.publish_many("orders", [b"a", {"value": b"b", "delay": "10s"}, b"c", {"value": b"d", "delay": "10s"}])
    assert value(b, PUBLISHED, topic="orders") == 4
    b.slow_disk("5s")
    for _ in range(60):  # stored that they are due, appended, synced
        await b.advance("1s")
        assert value(b, PUBLISHED, topic="orders") == 4
    assert (await b.read("orders"))[-1].value == b"d"
    assert value(b, PUBLISHED, topic="orders") == 4
    assert value(b, "goqueue_broker_delayed_messages_fired_total", topic="orders") == 2


@in_memory
async def test_what_was_never_acknowledged_is_not_published_but_failed(b: MemoryBroker) -> None:
    await b.create_topic("orders")
    await b.publish_many("orders", [b"x"] * 3)
    b.faults.add("sync", 5, prefix="logs/orders", forever=True)
    with pytest.raises(GoQueueError):
        await b.publish_many("orders", [b"x"] * 7)
    assert value(b, PUBLISHED, topic="orders") == 3
    failed = "goqueue_broker_messages_failed_total"
    assert value(b, failed, topic="orders", error_type="KAFKA_STORAGE_ERROR") == 7
    with pytest.raises(GoQueueError):
        await b.publish("orders", b"x")
    assert value(b, failed, topic="orders", error_type="KAFKA_STORAGE_ERROR") == 8
    assert value(b, "goqueue_storage_fsync_errors_total") == 1


@in_memory
async def test_lag_is_the_end_minus_what_is_committed(b: MemoryBroker) -> None:
    """As PromQL would have it too, where a group has been in all partitions."""
    await b.create_topic("orders", partitions=3)
    await b.publish_many("orders", [b"x"] * 30)
    for message in await b.receive("orders", "g", max_messages=12):
        await message.ack()
    labels = {"topic": "orders", "consumer_group": "g"}
    committed = value(b, "goqueue_consumer_committed_offset", **labels)
    assert value(b, "goqueue_consumer_lag_messages", **labels) == 18
    assert value(b, "goqueue_storage_log_end_offset", topic="orders") - committed == 18


@in_memory
async def test_publish_latency_counts_requests(b: MemoryBroker) -> None:
    await b.create_topic("orders")
    b.slow_disk("30ms")
    task = asyncio.create_task(b.publish_many("orders", [b"x"] * 50))
    await b.advance("1s")
    await task
    (histogram,) = b.broker.metrics.meters.published_s.values()
    assert histogram.count == 1
    assert histogram.total == pytest.approx(0.03)
    assert histogram.counts[LATENCY_S.index(0.05)] == 1


# -- within bounds


@in_memory
async def test_topics_beyond_the_bound_are_summed_up(b: MemoryBroker) -> None:
    for number in range(6):
        await b.create_topic(f"t{number}")
        await b.publish_many(f"t{number}", [b"x"] * (number + 1))
    metrics = bounded(b, series_max=2)  # our own ledgers come last
    found = numbers(metrics, PUBLISHED)
    assert found == {("t0",): 1, ("t1",): 2, ("_other",): 3 + 4 + 5 + 6}
    await b.delete_topic("t0")
    assert numbers(metrics, PUBLISHED) == {("t1",): 2, ("_other",): 18}
    assert numbers(metrics, PUBLISHED) == {("t1",): 2, ("t2",): 3, ("_other",): 15}


@in_memory
async def test_partitions_are_told_apart_only_if_asked_for(b: MemoryBroker) -> None:
    await b.create_topic("orders", partitions=2)
    await b.publish_many("orders", [{"value": b"x", "partition": 0}] * 2 + [{"value": b"x", "partition": 1}])
    await b.receive("orders", "g")
    end, lag = "goqueue_storage_log_end_offset", "goqueue_consumer_lag_messages"
    assert numbers(b.broker.metrics, end)["orders",] == 3
    apart = bounded(b, has_partitions=True)
    assert {key: number for key, number in numbers(apart, end).items() if key[0] == "orders"} == {
        ("orders", "0"): 2,
        ("orders", "1"): 1,
    }
    assert numbers(apart, lag) == {("orders", "g", "0"): 2, ("orders", "g", "1"): 1}
    assert 'partition="0",node_id="1"' in apart.exposition()[0].decode()


@in_memory
async def test_a_scrape_costs_so_much_per_partition_and_topic(b: MemoryBroker) -> None:
    """Counted, not timed: twice the partitions of one topic are no more lines, and no log is read."""
    await b.create_topic("orders", partitions=10)
    few = b.broker.metrics.exposition()[0].count(b"\n")
    await b.create_topic("bills", partitions=1000)
    before = b.disk.op_count
    more = b.broker.metrics.exposition()[0].count(b"\n")
    assert b.disk.op_count == before
    assert 0 < more - few < 40


# -- in both formats


@served
async def test_both_formats_say_what_the_library_would_write(client: Client) -> None:
    await client.b.create_topic("orders")
    await client.b.publish("orders", b"x")
    await client.b.receive("orders", 'quo"ted\\ \u00fc')
    metrics = client.b.broker.metrics
    registry = CollectorRegistry()
    registry.register(metrics)
    text, plain_type = metrics.exposition()
    assert plain_type.startswith("text/plain; version=0.0.4")
    assert read(text.decode()) == read(generate_latest(registry).decode())
    accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
    reply = await client.http.get("/metrics", headers={"accept": accept})
    assert reply.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    open_text = metrics.exposition(accept)[0].decode()
    library = generate_openmetrics(registry).decode()
    assert read(open_text, openmetrics=True) == read(library, openmetrics=True)
    assert open_text.endswith("# EOF\n")
    process = {"process_resident_memory_bytes", "process_open_fds", "python_gc_collections", "python_info"}
    assert process <= {family.name for family in parse_openmetrics(open_text)}


def test_metrics_that_are_off_say_so() -> None:
    async def inside() -> None:
        async with broker(http=True) as b, httpx.AsyncClient(base_url=b.http) as http:
            b.broker.metrics._options = MetricsOptions(is_on=False)
            reply = await http.get("/metrics")
            assert (reply.status_code, reply.json()["code"]) == (503, "METRICS_OFF")
            await b.create_topic("orders")
            await b.publish("orders", b"x")

    asyncio.run(inside())


def test_what_the_brief_names() -> None:
    names = {metric.name: metric for metric in METRICS}
    assert names[PUBLISHED].labels == ("topic",)
    assert names["goqueue_broker_publish_latency_seconds"].kind == HISTOGRAM
    assert names["goqueue_storage_bytes_written_total"].kind == COUNTER
    assert names["goqueue_consumer_group_members"].labels == ("consumer_group",)
    assert all(re.fullmatch(r"goqueue_(broker|storage|consumer|runtime|cluster)_[a-z_]+", name) for name in names)
    assert all(name.endswith("_total") == (metric.kind == COUNTER) for name, metric in names.items())
    assert LATENCY_S == (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5)


def test_the_documentation_lists_every_metric() -> None:
    rows = [
        f"| `{metric.name}` | {metric.kind} | {', '.join(metric.labels) or '-'} | {metric.help} |" for metric in METRICS
    ]
    _, page = (ROOT / "docs" / "metrics.md").read_text("utf-8").split("## All metrics")
    table = [line for line in page.splitlines() if line.startswith("| `goqueue_")]
    assert table == rows, "the table in docs/metrics.md should read:\n" + "\n".join(rows)
