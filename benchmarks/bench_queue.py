"""Queue groups: what it costs the broker to lease and settle a message, in process and through the Kafka door.

In process: the whole broker on a disk in memory, so the figures are CPU only; with `disk` that includes a sync of this
disk, in the same thread. The collector of cycles is set as in a node. The baseline is a stream read of the same
messages: what reading them costs without leases. The rows called a floor are what the benchmark itself costs: its disk
in memory, its clock and its committer, which it asks by hand, without a broker.
"""

import gc
import time
from statistics import median
from typing import Any

import confluent_kafka as ck
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from benchmarks.harness import TURNS, Row, node, row
from benchmarks.share_load import share_load
from goqueue.broker.queues.settle import Wanted
from goqueue.broker.queues.taking import ReceiveRequest
from goqueue.broker.reading.wants import Got, Limits, Want
from goqueue.cli.bench.broker import OwnBroker
from goqueue.cli.bench.raw import echo
from goqueue.machines.controller_commands import CreateTopic
from goqueue.machines.deliveries.commands import Place, Settle, Settlement, SettleReply, Verdict
from goqueue.model.errors import GoQueueError
from goqueue.node.process import GC_THRESHOLDS
from goqueue.records.build import build_batch
from goqueue.records.native import Headers
from goqueue.storage.committer import Committer
from goqueue.testing import MemoryDisk, VirtualClock
from goqueue.testing.memory_node import MemoryNode

TOPIC, GROUP = "orders", "workers"
VALUE = b"x" * 100
BATCH = 100
SHARED = 100_000
DEADLINE_S = 120
MEMBERS = 8
RAW_LOADS = ((1, 5_000), (10, 50_000), (100, 200_000))
"""How many at a time, and of how many."""
CPU_AIMS = {1: "<= 60 us/msg", 100: "<= 2 us/msg"}
DURABILITIES = ("os", "disk")
ONE_BY_ONE, POLLED = 5_000, 20_000
"""Of the two loads that are compared by durability."""
ECHOES = 10_000
TOGETHER = 8
"""Consumers that receive and acknowledge in the same turn of the loop."""
STORED_BYTES = 120
"""Of the batch in which an ack is stored, about."""
SENDERS = 20
FLOOR_ROUNDS = 3_000


def run() -> list[Row]:
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    rows: list[Row] = []
    stream_us = min(Run(20_000).read_stream() for _ in range(TURNS))
    for pull, count in ((1, 3_000), (10, 20_000), (100, 100_000)):
        by_range = min(Run(count).settle_ranges(pull) for _ in range(TURNS))
        on_os = min(Run(count, durability="os").settle_ranges(pull) for _ in range(TURNS))
        by_receipt = min(Run(count).settle_receipts(pull) for _ in range(TURNS))
        aim = "> 300,000 acked msg/s" if pull == 100 else None
        name = f"receive + ack of {pull}, in process"
        rows += [
            row(f"{name}, by range: CPU", by_range, "us/msg", stream_us, CPU_AIMS.get(pull)),
            row(f"{name}, by range, durability os: CPU", on_os, "us/msg", stream_us, CPU_AIMS.get(pull)),
            row(f"{name}, by range: rate of one core", 1e6 / by_range, "msg/s", None, aim),
            row(f"{name}, decoded, by receipt", by_receipt, "us/msg", stream_us, None),
        ]
    for pull, count in ((1, 3_000), (100, 20_000)):
        plain = min(Run(count, senders=SENDERS).settle_ranges(pull) for _ in range(TURNS))
        fair = min(Run(count, senders=SENDERS, fair_by="header").settle_ranges(pull) for _ in range(TURNS))
        rows.append(
            row(f"receive + ack of {pull}, in process, fair between {SENDERS} senders", fair, "us/msg", plain, None)
        )
    rows += [*together_rows(stream_us), *floor_rows()]
    for pull, count in RAW_LOADS:
        rows += raw_share_rows(pull, count)
    return [*rows, *share_rows(), *durability_rows()]


class Run:
    """A broker in process with `count` messages of 100 bytes in one partition, in batches of 100."""

    def __init__(self, count: int, senders: int = 0, fair_by: str = "none", durability: str = "disk") -> None:
        self.count = count
        self.clock = VirtualClock()
        self.node = MemoryNode(MemoryDisk(), self.clock, Committer(lambda finish: finish(), self.clock.now_ms))
        self.node.assemble()
        self.commit()
        self.node.broker.topics.submit(
            CreateTopic(TOPIC, b"0123456789abcdef", 1, {"fair.by": fair_by, "durability": durability}),
            lambda reply: None,
        )
        self.commit()
        now_ms = self.clock.now_ms()
        for number in range(count // BATCH):
            headers: Headers = [("gq-fairness-key", b"%d" % (number % senders))] if senders else []
            data = memoryview(build_batch([(now_ms, None, VALUE, headers)] * BATCH))
            self.node.broker.publisher.publish(TOPIC, 0, data)
        self.commit()

    def commit(self) -> None:
        while True:
            self.clock.run()
            if not self.node.committer.run_once():
                return

    def read_stream(self) -> float:
        """CPU of reading all messages, 100 at a time, as bytes."""
        started = time.process_time()
        offset = 0
        while offset < self.count:
            want = Want(TOPIC, 0, offset, BATCH * (len(VALUE) + 10))
            found: list[tuple[Want, Got]] = []
            self.node.broker.fetcher.fetch([want], Limits(1, 1 << 20, 0), found.extend)
            ((_, got),) = found
            assert got.piece is not None
            assert got.piece.view()
            offset = got.piece.next_offset
        return (time.process_time() - started) / self.count * 1e6

    def settle_ranges(self, pull: int, consumers: int = 1) -> float:
        """As the Kafka door does: whole batches out, ranges of offsets back. `consumers`: so many in the same turn."""
        place, names = Place(GROUP, TOPIC, 0), [f"consumer-{number}" for number in range(consumers)]
        self._open_place()
        started = time.process_time()
        done = 0
        while done < self.count:
            held = [(name, leased.slices.runs) for name, (leased,) in zip(names, self._receive_each(pull, names))]
            replies: list[SettleReply | GoQueueError] = []
            for name, runs in held:
                settlements = tuple(Settlement(one.first, one.last) for one in runs)
                self.node.broker.queues.submit(Settle(place, settlements, name), replies.append)
                done += sum(one.last - one.first + 1 for one in runs)
            self.commit()
            assert len(replies) == consumers
            for reply in replies:
                assert isinstance(reply, SettleReply)
                assert set(reply.verdicts) == {Verdict.DONE}
        assert done == self.count
        return (time.process_time() - started) / self.count * 1e6

    def _open_place(self) -> None:
        """A place is opened by whoever comes first, which is not what is measured."""
        replies: list[Any] = []
        request = ReceiveRequest(GROUP, "first", [(TOPIC, 0)], 0, is_opened=False)
        self.node.broker.receiver.receive(request, replies.append)
        self.commit()

    def _receive_each(self, pull: int, names: list[str], *, is_opened: bool = False) -> list[Any]:
        replies: list[Any] = []
        for name in names:
            request = ReceiveRequest(GROUP, name, [(TOPIC, 0)], pull, is_opened=is_opened)
            self.node.broker.receiver.receive(request, replies.append)
        self.commit()
        return replies

    def spend_floor(self, durability: str) -> float:
        """CPU of what the benchmark does for one receive + ack, without a broker: two turns, one write, one sync."""
        file, data = self.node.disk.open("floor", create=True), (bytes(STORED_BYTES),)
        started = time.process_time()
        for number in range(FLOOR_ROUNDS):
            self.commit()
            file.write(number * STORED_BYTES, data)
            if durability == "disk":
                file.sync()
            self.commit()
        return (time.process_time() - started) / FLOOR_ROUNDS * 1e6

    def settle_receipts(self, pull: int) -> float:
        """As HTTP and SQS do: every record decoded, a signed receipt for each, and all of them back."""
        broker, place = self.node.broker, Place(GROUP, TOPIC, 0)
        started = time.process_time()
        done = 0
        while done < self.count:
            ((leased,),) = self._receive_each(pull, ["one"], is_opened=True)
            records = broker.receiver.read(leased, GROUP)
            lease = leased.lease, leased.epoch
            receipts = [broker.settler.receipt(place, record.offset, *lease) for record, _ in records]
            answers: list[Any] = []
            broker.settler.settle([Wanted(receipt) for receipt in receipts], answers.append)
            self.commit()
            assert set(answers[0]) == {Verdict.DONE}
            done += len(records)
        assert done == self.count
        return (time.process_time() - started) / self.count * 1e6


def together_rows(stream_us: float) -> list[Row]:
    rows = []
    for pull, count in ((1, 8_000), (10, 24_000), (100, 80_000)):
        for durability in DURABILITIES:
            turns = (Run(count, durability=durability).settle_ranges(pull, TOGETHER) for _ in range(TURNS))
            name = f"receive + ack of {pull}, in process, {TOGETHER} consumers in a turn, durability {durability}: CPU"
            rows.append(row(name, min(turns), "us/msg", stream_us, None))
    return rows


def floor_rows() -> list[Row]:
    return [
        row(
            f"receive + ack of 1, in process, durability {durability}: floor, the benchmark alone",
            min(Run(0).spend_floor(durability) for _ in range(TURNS)),
            "us/msg",
            None,
            None,
        )
        for durability in DURABILITIES
    ]


def raw_share_rows(pull: int, count: int) -> list[Row]:
    """Through the Kafka door, with bare connections: ShareFetch of exactly `pull` records, each with the
    acknowledgements of the one before. The messages lie in batches of `pull`, so that what is sent is what was asked
    for. The baseline is an echo of the same bytes through the same event loop.
    """
    turns = []
    for _ in range(TURNS):
        with node() as broker:
            fill(broker.address, count, pull)
            turns.append(share_load(broker, GROUP, TOPIC, count, pull, MEMBERS))
    rate = max(turn.rate for turn in turns)
    cpu_us = min(turn.cpu_us for turn in turns)
    with echo(turns[0].request_bytes, turns[0].reply_bytes) as server:
        raw = [server.run(ECHOES, MEMBERS) for _ in range(TURNS)]
    raw_rate = max(run.requests_per_s for run in raw) * pull
    raw_us = min(run.cpu_us_per_request for run in raw) / pull
    name = f"receive + ack of {pull}, Kafka door, {MEMBERS} connections"
    return [
        row(f"{name}: acked", rate, "msg/s", raw_rate, None),
        row(f"{name}: broker CPU", cpu_us, "us/msg", raw_us, None),
    ]


def share_rows() -> list[Row]:
    with node() as broker:
        fill(broker.address, SHARED, BATCH)
        taken, cpu_s = consume(broker, SHARED)
    return [
        row("ShareConsumer, acked", SHARED / taken, "msg/s", None, None),
        row("ShareConsumer, broker CPU", cpu_s / SHARED * 1e6, "us/msg", None, None),
    ]


def durability_rows() -> list[Row]:
    """What it costs to wait for the disk, in CPU of the broker. `os` and `disk` are measured in turn, and the ratio is
    that of the medians. Baseline is `os`.
    """
    loads = {
        f"receive + ack of 1, Kafka door, {MEMBERS} connections": one_by_one_cpu_us,
        "ShareConsumer": polled_cpu_us,
    }
    rows = []
    for name, measure in loads.items():
        found: dict[str, list[float]] = {durability: [] for durability in DURABILITIES}
        for _ in range(TURNS):
            for durability in DURABILITIES:
                found[durability].append(measure(durability))
        on_os, on_disk = (median(found[durability]) for durability in DURABILITIES)
        rows.append(row(f"{name}: broker CPU, disk against os", on_disk, "us/msg", on_os, "ratio <= 1.3"))
    return rows


def one_by_one_cpu_us(durability: str) -> float:
    with node() as broker:
        create(broker.address, durability)
        fill(broker.address, ONE_BY_ONE, 1)
        return share_load(broker, GROUP, TOPIC, ONE_BY_ONE, 1, MEMBERS).cpu_us


def polled_cpu_us(durability: str) -> float:
    with node() as broker:
        create(broker.address, durability)
        fill(broker.address, POLLED, BATCH)
        _, cpu_s = consume(broker, POLLED)
    return cpu_s / POLLED * 1e6


def create(address: str, durability: str) -> None:
    topic = NewTopic(TOPIC, 1, 1, config={"durability": durability})
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.create_topics([topic]).values():
        future.result(30)


def consume(broker: OwnBroker, count: int) -> tuple[float, float]:
    """confluent-kafka's ShareConsumer, one client, implicit acknowledgements: seconds, and CPU of the broker."""
    consumer = ck.ShareConsumer(
        {"bootstrap.servers": broker.address, "group.id": GROUP, "share.acknowledgement.mode": "implicit"}
    )
    consumer.subscribe([TOPIC])
    seen: set[tuple[int, int]] = set()
    cpu_s, started = 0.0, 0.0
    deadline = time.monotonic() + DEADLINE_S
    while len(seen) < count:
        assert time.monotonic() < deadline, f"{len(seen)} of {count} came"
        messages = consumer.poll(1)
        if messages and not seen:
            cpu_s, started = broker.process.cpu_s(), time.perf_counter()
        for message in messages:
            assert message.error() is None
            seen.add((message.partition() or 0, message.offset() or 0))
    consumer.commit_sync(30)
    taken, cpu_s = time.perf_counter() - started, broker.process.cpu_s() - cpu_s
    consumer.close()
    assert len(seen) == count
    return taken, cpu_s


def fill(address: str, count: int, batch: int) -> None:
    linger_ms = 50 if batch > 1 else 0
    producer = ck.Producer({"bootstrap.servers": address, "linger.ms": linger_ms, "batch.num.messages": batch})
    for _ in range(count):
        while True:
            try:
                producer.produce(TOPIC, VALUE, partition=0)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(60) == 0
    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, GROUP, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(30)
