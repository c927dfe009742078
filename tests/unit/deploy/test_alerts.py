"""Each alert fires because of a fault, over what a real broker answered to scrapes; and none without one."""

import asyncio
import errno
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import promql_parser as ql
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from goqueue.broker.loop_watch import LoopWatch
from goqueue.broker.reading.wants import Limits, Want
from goqueue.model.errors import GoQueueError
from goqueue.model.placements import Lost, NodeInfo, Placement
from goqueue.model.topics import Image, TopicsChange
from goqueue.runtime.standby import StandbyCounts
from tests.layers import in_layers
from tests.promql import Samples, evaluate
from tests.unit.deploy.alerts import RULES, RULES_FILE, Scraped, promtool_agrees, scraped

Fault = Callable[[Scraped], Awaitable[None]]


async def publish(s: Scraped, count: int = 10) -> None:
    """By a task: on a slow disk it is done while time passes."""
    TASKS.append(asyncio.create_task(s.b.publish_many("orders", [b"x"] * count)))


TASKS: list[asyncio.Task[object]] = []


async def nothing(s: Scraped) -> None:
    """A busy and healthy node, with a group that keeps up."""

    async def work() -> None:
        await publish(s)
        for message in await s.b.receive("orders"):
            await message.ack()

    await s.minutes(16, work)


async def lag(s: Scraped, messages: int) -> None:
    await s.b.receive("orders")
    for _ in range(messages // 5000 + 1):
        await s.b.publish_many("orders", [b"x"] * 5000)

    async def read_on() -> None:  # slowly: it moves, but not enough
        for message in await s.b.receive("orders", max_messages=1):
            await message.ack()

    await s.minutes(6, read_on)


async def warning_lag(s: Scraped) -> None:
    await lag(s, 10_000)


async def critical_lag(s: Scraped) -> None:
    await lag(s, 100_000)


async def rebalances(s: Scraped) -> None:
    async def come_and_go() -> None:
        joined = (await s.http.post("/groups/g/join", json={"client_id": "a", "topics": ["orders"]})).json()
        await s.http.post("/groups/g/leave", json={"member_id": joined["member_id"]})

    await s.minutes(2, come_and_go)


async def no_progress(s: Scraped) -> None:
    async def read_a_little() -> None:
        await publish(s)
        (message,) = await s.b.receive("orders", max_messages=1, lease="1h")
        await message.ack()

    await s.minutes(1, read_a_little)
    await s.minutes(16)


async def abandoned_group(s: Scraped) -> None:
    """It stopped for good: whoever stopped it has known for an hour."""
    await no_progress(s)
    assert s.firing() == {"GoQueueNoProgress"}
    await s.minutes(65)


async def dead_letters(s: Scraped) -> None:
    async def reject() -> None:
        await publish(s)
        for message in await s.b.receive("orders"):
            await message.reject("no good")

    await s.minutes(1, reject)


async def slow_disk(s: Scraped, sync: str) -> None:
    s.b.slow_disk(sync)
    await s.minutes(11, lambda: publish(s))


async def slow_publish(s: Scraped) -> None:
    await slow_disk(s, "80ms")


async def slow_sync(s: Scraped) -> None:
    await slow_disk(s, "400ms")


async def slow_fetch(s: Scraped) -> None:
    clock, fetcher = s.b._virtual, s.b.broker.fetcher
    assert clock is not None
    read = fetcher.read

    def slow_read(*wanted: object) -> object:
        clock._now_ms += 200  # a cold read from a slow disk
        return read(*wanted)  # type: ignore[arg-type]

    fetcher.read = slow_read  # type: ignore[assignment,method-assign]
    await publish(s)

    async def fetch() -> None:
        fetcher.fetch([Want("orders", 0, 0, 1000)], Limits(1, 1000, 0), lambda got: None)

    await s.minutes(11, fetch)


class LateClock:
    """Runs timers as late as an event loop that others keep busy."""

    def __init__(self, s: Scraped) -> None:
        self._clock = s.b.broker.clock
        self.now_ms = self._clock.now_ms
        self.monotonic_s = self._clock.monotonic_s
        self.call_soon = self._clock.call_soon

    def call_after(self, delay_ms: float, call: Callable[[], None]) -> object:
        return self._clock.call_after(delay_ms + 300, call)


async def late_loop(s: Scraped) -> None:
    LoopWatch(LateClock(s), s.b.broker.metrics.meters.loop_lag_s).start()  # type: ignore[arg-type]
    await s.minutes(11)


async def crash(s: Scraped) -> None:
    await s.minutes(1)
    await s.b.crash()
    await s.minutes(1)


async def failing_sync(s: Scraped) -> None:
    await s.minutes(1, lambda: publish(s))
    s.b.faults.add("sync", errno.EIO, prefix="logs/orders/0", forever=True)
    await s.minutes(1.5, lambda: publish(s))


async def failing_write(s: Scraped) -> None:
    await s.minutes(1, lambda: publish(s))
    fault = s.b.faults.add("write", errno.EIO, prefix="logs/orders/0", suffix=".log")
    with pytest.raises(GoQueueError):
        await s.b.publish("orders", b"x")
    assert fault.hits
    await s.minutes(1)


async def errors(s: Scraped) -> None:
    async def some_bad() -> None:
        await publish(s, 90)
        with pytest.raises(GoQueueError):
            await s.b.publish("orders", b"x" * 2_000_000)

    await s.minutes(11, some_bad)


async def full_disk(s: Scraped) -> None:
    assert s.b._running is not None
    reserve = s.b.disk.free_bytes() * 2 // 3
    s.b._running.node.replicas.disk_reserve_bytes = reserve
    await s.minutes(6)


async def refused_appends(s: Scraped) -> None:
    await s.minutes(1, lambda: publish(s))
    s.b.disk.capacity_bytes = s.b.disk.total_bytes() - s.b.disk.free_bytes()
    with pytest.raises(GoQueueError):
        await s.b.publish("orders", b"x" * 100_000)
    s.b.disk.capacity_bytes = None  # there is room again: what was refused is told all the same
    await s.minutes(1)


async def rotten_batch(s: Scraped) -> None:
    await s.minutes(1, lambda: publish(s))
    (segment,) = [f"logs/orders/0/{name}" for name in s.b.disk.list("logs/orders/0") if name.endswith(".log")]
    s.b.disk.flip_bit(segment, 8 * 70)
    assert len(await s.b.read("orders", 0)) == 30, "the other batches are read"
    await s.minutes(1)


def see(
    s: Scraped, isr: tuple[int, ...], *, leader: int | None = None, epoch: int = 1, lost: tuple[Lost, ...] = ()
) -> None:
    """The node is shown an image with two nodes more; node 9 is down."""
    watch = s.b.broker.cluster
    before, me = watch.image, watch.node_id
    placement = Placement(leader or me, before.nodes[me].incarnation, epoch, isr, (me, 8, 9), lost=lost)
    topic = replace(before.topics["orders"], placements=(placement,), replication_factor=3)
    nodes = MappingProxyType({me: before.nodes[me], 8: NodeInfo(8, 80)})
    image = Image(before.revision + 1, {"orders": topic}, nodes)
    watch.changed(TopicsChange(before, image, frozenset({"orders"})))


def me_of(s: Scraped) -> int:
    return s.b.broker.cluster.node_id


async def missing_replica(s: Scraped) -> None:
    see(s, (me_of(s), 8))
    await s.minutes(6)


async def too_few_replicas(s: Scraped) -> None:
    see(s, (me_of(s),))
    await s.minutes(2)


async def no_leader(s: Scraped) -> None:
    see(s, (9,), leader=9)
    await s.minutes(1)


async def unclean_election(s: Scraped) -> None:
    see(s, (9,), leader=9)
    await s.minutes(0.25)
    see(s, (me_of(s), 8), epoch=2, lost=(Lost(0, me_of(s), 5, "operator"),))
    await s.minutes(1)


async def late_standbys(s: Scraped) -> None:
    s.b.broker.cluster.standbys = lambda: StandbyCounts(33, 2, 50_000)
    await s.minutes(6)


async def no_session(s: Scraped) -> None:
    s.b.broker.cluster.session_holds = lambda: False
    await s.minutes(2)


async def restless_leaders(s: Scraped) -> None:
    for epoch in range(2, 14):
        see(s, (me_of(s), 8), epoch=epoch)
        await s.minutes(0.25)


async def old_certificate(s: Scraped) -> None:
    s.b.broker.metrics.meters.certificates = lambda: {"kafka/public": 86400.0, "http/public": 90 * 86400.0}
    await s.minutes(6)


async def open_to_others(s: Scraped) -> None:
    s.b.broker.metrics.meters.insecure_listeners = 1
    await s.minutes(6)


BOTH_LAGS = {"GoQueueHighConsumerLag", "GoQueueCriticalConsumerLag"}
BOTH_PUBLISH = {"GoQueueHighPublishLatency", "GoQueueCriticalPublishLatency"}
OUT_OF_SERVICE = {"GoQueuePartitionsOutOfService", "GoQueueNodeUnhealthy", "GoQueueStorageWriteErrors"}
FAULTS: dict[Fault, set[str]] = {
    nothing: set(),
    warning_lag: {"GoQueueHighConsumerLag"},
    critical_lag: BOTH_LAGS,
    rebalances: {"GoQueueConsumerGroupUnstable"},
    no_progress: {"GoQueueNoProgress"},
    abandoned_group: set(),
    dead_letters: {"GoQueueDeadLetters"},
    slow_publish: {"GoQueueHighPublishLatency"},
    slow_sync: BOTH_PUBLISH | {"GoQueueHighFsyncLatency"},
    slow_fetch: {"GoQueueHighFetchLatency"},
    late_loop: {"GoQueueEventLoopLate"},
    crash: {"GoQueueNodeUnhealthy"},
    failing_sync: OUT_OF_SERVICE,
    failing_write: OUT_OF_SERVICE,
    errors: {"GoQueueHighErrorRate"},
    full_disk: {"GoQueueDiskNearReserve"},
    refused_appends: {"GoQueueAppendsRefused"},
    rotten_batch: {"GoQueueDamage"},
    missing_replica: {"GoQueueUnderReplicatedPartitions", "GoQueueNodeMissing"},
    too_few_replicas: {"GoQueueUnderMinIsr"},
    no_leader: {"GoQueueOfflinePartitions"},
    unclean_election: {"GoQueueUncleanElection"},
    late_standbys: {"GoQueueStandbysBehind"},
    no_session: {"GoQueueSessionLost"},
    restless_leaders: {"GoQueueLeadersChangeOften"},
    old_certificate: {"GoQueueCertificateExpires"},
    open_to_others: {"GoQueueInsecureListener"},
}


@pytest.mark.parametrize("fault", in_layers(list(FAULTS), first=10), ids=lambda fault: fault.__name__)
def test_a_fault_fires_its_alerts_and_no_others(fault: Fault, tmp_path: Path) -> None:
    async def inside() -> Samples:
        async with scraped() as s:
            await fault(s)
            tasks, TASKS[:] = list(TASKS), []
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            assert s.firing() == FAULTS[fault]
            return s.samples

    promtool_agrees(asyncio.run(inside()), FAULTS[fault], tmp_path)


def test_figures_are_told_in_few_digits() -> None:
    bare = re.compile(r"{{ *\$value *}}")
    document = yaml.safe_load(RULES_FILE.read_text("utf-8"))
    rules = [rule for group in document["groups"] for rule in group["rules"]]
    assert any("$value" in rule["annotations"]["summary"] for rule in rules)
    assert [rule["alert"] for rule in rules if bare.search(str(rule["annotations"]))] == []


def test_every_alert_has_a_fault() -> None:
    assert set().union(*FAULTS.values()) == RULES.keys()


@given(st.lists(st.integers(0, 50), min_size=2, max_size=20))
def test_a_counter_that_is_scraped_regularly_rises_by_what_it_rose(rises: list[int]) -> None:
    """Our evaluator, against arithmetic: samples at both ends of the window need no guessing."""
    samples, total = Samples(), 1000
    for number, rise in enumerate(rises):
        total += rise
        samples.scraped(number * 15.0, f"x_total {total}\n")
    window_s = (len(rises) - 1) * 15
    found = evaluate(ql.parse(f"sum(increase(x_total[{window_s}s]))"), samples, float(window_s))
    assert isinstance(found, dict)
    assert found[frozenset()] == pytest.approx(sum(rises[1:]))
