"""What every broker is given to do. Each load checks that all was acknowledged, and that what came came once."""

import selectors
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from itertools import count
from typing import NamedTuple

from benchmarks.harness import QUIET
from benchmarks.peers.kafka import KafkaRunning
from benchmarks.peers.system import Reader, Running, number_head
from benchmarks.produce_load import Shape
from benchmarks.receivers import Shared, receive_all
from benchmarks.senders import NOTHING_S_MAX, Sender, Spent, drive, send_all
from goqueue.cli.bench.broker import Broker
from goqueue.cli.bench.load import Load as BenchLoad
from goqueue.cli.bench.process import MIB
from goqueue.cli.bench.raw import SyncedFile
from goqueue.cli.bench.report import quantiles
from goqueue.cli.bench.throughput import bench_consume

VALUE_BYTES = 100
CONSUMERS = 8
FILL_AHEAD = 50
RATE = 1000
BUSY_MAX = 0.9
"""A load generator that takes more of a core than this may be what the rate measures."""
LATENCY_WARM_UP = 200
END_TO_END_WARM_UP = 2000
SYNC_BYTES = 200
"""Of the bare sync: about one message with what is around it."""

CPU, CLIENT, FLOW = "broker CPU", "load generator", "rate"
P50, P99, SYNC_P50, SYNC_P99 = "p50", "p99", "bare sync p50", "bare sync p99"
START, REST, PEAK = "start", "memory at rest", "peak memory"
UNITS = {
    CPU: "us/msg",
    FLOW: "msg/s",
    CLIENT: "of a core",
    START: "s",
    REST: "MiB",
    PEAK: "MiB",
    **dict.fromkeys((P50, P99, SYNC_P50, SYNC_P99), "ms"),
}

Figures = Mapping[str, float]
"""By what they are."""

_names = (f"load-{number}" for number in count())


class Load(NamedTuple):
    key: str
    """By which it is chosen."""
    title: str
    run: Callable[[Running], Figures]
    systems: tuple[str, ...] = ()
    """Those that can do it; all, if none is named."""
    is_synced: bool = False
    curve: str = ""
    """The plot that it is a point of, if any."""
    at: int = 0


def receive(pull: int, messages: int, groups: int = 0) -> Callable[[Running], Figures]:
    """By eight consumers of one group, or by one consumer in each of several groups. A smaller load of the same kind
    comes first: a JVM compiles what it is given often."""
    names = [f"group-{number}" for number in range(groups)] or ["workers"] * CONSUMERS

    def run(broker: Running) -> Figures:
        spent = None
        for size in (messages // 4, messages):
            topic = next(_names)
            broker.make(topic)
            _fill(broker, topic, pull, size)
            receivers = broker.receivers(topic, [f"{topic}-{name}" for name in names], pull)
            spent = receive_all(receivers, size, broker.process.cpu_s)
        assert spent is not None
        return _flow(spent)

    return run


def _fill(broker: Running, topic: str, batch: int, messages: int) -> None:
    shape = Shape(VALUE_BYTES, batch, is_mixed=True, producers=1, requests_ahead=FILL_AHEAD)
    senders, sent = broker.senders(topic, 1, shape, messages)
    drive(senders)
    for sender in senders:
        sender.socket.close()
    assert sent == messages


def publish(
    batch: int, connections: int, ahead: int, messages: int, partitions: int = 1
) -> Callable[[Running], Figures]:
    shape = Shape(VALUE_BYTES, batch, is_mixed=True, producers=connections, requests_ahead=ahead)

    def run(broker: Running) -> Figures:
        topic = next(_names)
        broker.make(topic, partitions)
        warm_up = max(batch * connections * partitions, messages // 4)
        spent = send_all(
            lambda wanted: broker.senders(topic, partitions, shape, wanted), warm_up, messages, broker.process.cpu_s
        )
        return _flow(spent)

    return run


def publish_synced(messages: int) -> Callable[[Running], Figures]:
    """One in flight. Each is followed by a bare sync of the same disk, so that a busy moment meets both."""
    shape = Shape(VALUE_BYTES, 1, is_mixed=True, producers=1, requests_ahead=1)

    def run(broker: Running) -> Figures:
        topic = next(_names)
        broker.make(topic)
        ((sender,), sent) = broker.senders(topic, 1, shape, messages + LATENCY_WARM_UP)
        published_s, synced_s = [], []
        with closing(sender.socket), closing(SyncedFile(broker.directory, SYNC_BYTES)) as file:
            for _ in range(sent):
                published_s.append(sender.round_trip_s())
                synced_s.append(file.write_s())
        ours, bare = quantiles(published_s[LATENCY_WARM_UP:]), quantiles(synced_s[LATENCY_WARM_UP:])
        return {
            P50: ours["p50"] * 1e3,
            P99: ours["p99"] * 1e3,
            SYNC_P50: bare["p50"] * 1e3,
            SYNC_P99: bare["p99"] * 1e3,
        }

    return run


def end_to_end(messages: int) -> Callable[[Running], Figures]:
    """From the call that sends a message to the message in the hands of a consumer that waits for it."""

    def run(broker: Running) -> Figures:
        topic = next(_names)
        broker.make(topic)
        total = messages + END_TO_END_WARM_UP
        values = [number_head(number) + bytes(VALUE_BYTES - 10 + number * 7 % 60) for number in range(total)]
        sender, reader = broker.values_sender(topic, values), broker.reader(topic)
        with closing(sender.socket), closing(reader.socket):
            taken_s = _pace(sender, reader, total)
        found = quantiles(taken_s[END_TO_END_WARM_UP:])
        return {P50: found["p50"] * 1e3, P99: found["p99"] * 1e3}

    return run


def _pace(sender: Sender, reader: Reader, messages: int) -> list[float]:
    """Send so many a second, and take what comes. How long each took, from when it was really sent."""
    sent_s: list[float] = []
    taken_s: dict[int, float] = {}
    # This one waits for microseconds; others round up to a millisecond.
    with selectors.SelectSelector() as selector:
        selector.register(sender.socket, selectors.EVENT_READ, sender)
        selector.register(reader.socket, selectors.EVENT_READ, reader)
        due_s = time.perf_counter()
        while len(taken_s) < messages:
            now_s = time.perf_counter()
            is_sending = len(sent_s) < messages
            if is_sending and now_s >= due_s:
                sent_s.append(now_s)
                sender.push()
                due_s += 1 / RATE
                continue
            events = selector.select(due_s - now_s if is_sending else NOTHING_S_MAX)
            assert events or is_sending, f"nothing came for {NOTHING_S_MAX} s, {len(taken_s)} of {messages} did before"
            for key, _ in events:
                for number in key.data.receive() or ():
                    assert number not in taken_s, f"message {number} came twice"
                    taken_s[number] = time.perf_counter() - sent_s[number]
    return [taken_s[number] for number in range(messages)]


def consume(partitions: int, messages: int) -> Callable[[Running], Figures]:
    """By librdkafka, as `goqueue bench consume` has it."""

    def run(broker: Running) -> Figures:
        assert isinstance(broker, KafkaRunning)
        load = BenchLoad(messages, VALUE_BYTES, batch=100, partitions=partitions, durability=broker.durability)
        found = bench_consume(Broker(broker.address, broker.process, broker.directory), load, QUIET).figures
        rate = found["messages_per_s"].value
        client = found["client_cpu_us_per_message"].value * rate / 1e6
        return {CPU: found["broker_cpu_us_per_message"].value, FLOW: rate, CLIENT: client}

    return run


def _flow(spent: Spent | Shared) -> Figures:
    return {CPU: spent.cpu_us, FLOW: spent.rate, CLIENT: spent.client_busy}


def rest(broker: Running) -> Figures:
    return {START: broker.process.start_s, REST: broker.process.memory().rss_bytes / MIB}


def peak(broker: Running) -> Figures:
    return {PEAK: broker.process.peak_bytes() / MIB}


def all_loads(scale: float) -> list[Load]:
    """`scale`: of the number of messages."""

    def some(messages: int) -> int:
        return max(400, int(messages * scale) // 400 * 400)

    kafkas, with_groups = ("goqueue", "kafka"), ("goqueue", "kafka", "redis", "nats")
    loads = [Load("rest", "started, with nothing in it", rest)]
    loads += [
        Load(f"receive-{pull}", f"receive + ack of {pull}, {CONSUMERS} connections", receive(pull, some(messages)))
        for pull, messages in ((1, 4_000), (10, 20_000), (100, 100_000))
    ]
    loads += [
        Load("batches", "publish in batches of 100, 16 connections", publish(100, 16, 5, some(200_000))),
    ]
    for number in (1, 10, 100, 1000):
        title = f"publish of 1, {number:,} connection{'s' * (number > 1)} with one in flight each"
        work = publish(1, number, 1, max(some(10_000), 4 * number))
        loads.append(Load(f"connections-{number}", title, work, curve="connections", at=number))
    loads.append(Load("end-to-end", f"end to end at {RATE:,} a second", end_to_end(some(10_000))))
    for number in (1, 10, 100, 1000):
        title = f"publish of 1, 8 connections, {number:,} partition{'s' * (number > 1)}"
        work = publish(1, 8, 1, max(some(8_000), 8 * number), number)
        loads.append(Load(f"partitions-{number}", title, work, kafkas, curve="partitions", at=number))
    loads += [
        Load(
            f"consume-{number}",
            f"consume, {number:,} partition{'s' * (number > 1)}, librdkafka",
            consume(number, max(some(500_000), 500 * number)),
            kafkas,
            curve="consume",
            at=number,
        )
        for number in (1, 10, 100, 1000)
    ]
    for number in (1, 10, 100, 1000):
        title = f"receive + ack of 1, {number:,} group{'s' * (number > 1)} of one consumer"
        work = receive(1, max(some(4_000) // number // 4 * 4, 8), number)
        loads.append(Load(f"groups-{number}", title, work, with_groups, curve="groups", at=number))
    return [
        *loads,
        Load("peak", "all of these", peak),
        Load("synced", "publish of 1, one in flight, synced", publish_synced(some(2_000)), is_synced=True),
    ]
