"""What journeys cost a publish: one broker that remembers none, one in a hundred or all of them, in turns.

The node is a real one on a real disk, in this process; requests come and replies go as bytes, without a socket, so the
ratios are worse than with one. A turn is so short that what else the machine does hits the turns of all variants alike:
fifty requests of each, in random order, again and again. What ends every second, when what was noted is searched for
traces and stored, is measured for itself, after a second's work, and its part of a message is added. A publish is bound
by the CPU of its broker, so what a message costs more is what less of them can be published.
"""

import asyncio
import gc
import time
from collections.abc import Iterator
from functools import partial
from random import Random
from statistics import median
from typing import Any

import uvloop

from benchmarks.harness import Row, row, workplace
from goqueue.broker.gate import Gate
from goqueue.doors.kafka.door import KafkaDoor
from goqueue.machines.controller_commands import CreateTopic
from goqueue.node.node import Node
from goqueue.node.process import GC_THRESHOLDS
from goqueue.node.settings import Settings
from goqueue.node.values import Address, Switch
from goqueue.records.build import build_batch
from goqueue.storage.compaction_process import compact_in_process
from goqueue.storage.real_disk import RealDisk
from goqueue.telemetry.journeys import Journeys, Step
from goqueue.wire.kafka.frames import request_frame
from goqueue.wire.kafka.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

NOTHING = -1.0
"""Not even counted."""
VARIANTS = (NOTHING, 0.0, 0.01, 1.0)
NAMES = {NOTHING: "nothing noted", 0.0: "counted only", 0.01: "sampling 0.01", 1.0: "sampling 1"}
AIMS = {0.01: "< 1.02", 1.0: "< 1.1"}
REQUESTS = 50
"""In a turn."""
BLOCKS, ROUNDS = 50, 60
"""A round has one turn of each. A ratio is taken within a block of rounds, and the median of all blocks counts."""
FLUSHES = 5
FLUSH_EVERY_S = 1.0
VALUE = bytes(100)
BATCHES = (1, 100)
NOTES, NOTE_TURNS = 200_000, 7
LATEST_PRODUCE = 12


def run() -> list[Row]:
    return [*note_rows(), *uvloop.run(measure_all())]


async def measure_all() -> list[Row]:
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    rows: list[Row] = []
    for batch in BATCHES:
        with workplace() as directory:
            free = Address("127.0.0.1", 0)
            settings = Settings(data_dir=directory, dev=Switch.ON, kafka=free, http=free, grpc=free)
            compact = partial(compact_in_process, settings.data_dir)
            node = Node(settings, RealDisk(settings.data_dir), compact=compact)
            await node.open()
            try:
                rows += batch_rows(batch, await measure(node._assembly.broker, batch))  # type: ignore[union-attr]  # noqa: SLF001
            finally:
                await node.close()
    return rows


async def measure(broker: Any, batch: int) -> dict[float, list[float]]:
    """CPU microseconds per message of each block, by variant."""
    is_made = asyncio.Event()
    command = CreateTopic("orders", b"orders".ljust(16, b"."), 1, {"durability": "os"})
    broker.topics.submit(command, lambda reply: is_made.set())
    await is_made.wait()
    connection = KafkaDoor(Gate(broker))._connect()  # noqa: SLF001  a connection without a socket
    transport = Transport()
    connection.connection_made(transport)
    publish = Publish(connection, produce_frame(batch), broker.topics.replica("orders", 0))
    hooks = broker.journeys.note, publish.replica.persisted.on_persisted
    journal = broker.tracing.journal

    def choose(variant: float) -> None:
        note, persisted = (_ignore, None) if variant == NOTHING else hooks
        broker.journeys.note, publish.replica.persisted.on_persisted = note, persisted
        broker.journeys.sampling = max(0.0, variant)

    flushing: dict[float, float] = {}
    for variant in VARIANTS:
        choose(variant)
        flushing[variant] = median([await publish.flush_us(journal) for _ in range(FLUSHES)])
    found: dict[float, list[float]] = {variant: [] for variant in VARIANTS}
    dice = Random(1)  # so that none always comes after the same one
    for _ in range(BLOCKS):
        sums = dict.fromkeys(VARIANTS, 0.0)
        for _ in range(ROUNDS):
            for variant in dice.sample(VARIANTS, len(VARIANTS)):
                choose(variant)
                sums[variant] += await publish.turn_us(REQUESTS)
        journal.catch_up()
        publish.replica.delete_before(publish.replica.high_watermark)
        for variant, turns_us in sums.items():
            found[variant].append(turns_us / (ROUNDS * REQUESTS * batch) + flushing[variant])
    assert transport.answers
    return found


class Publish:
    def __init__(self, connection: Any, frame: bytes, replica: Any) -> None:
        self._connection = connection
        self._frame = frame
        self.replica = replica

    async def turn_us(self, requests: int) -> float:
        """CPU of so many, until all are answered."""
        started_s = time.process_time()
        await send(self._connection, self._frame, requests)
        while self.replica.high_watermark < self.replica.end_offset:  # noqa: ASYNC110  that would cost too
            await asyncio.sleep(0)
        return (time.process_time() - started_s) * 1e6

    async def flush_us(self, journal: Any) -> float:
        """CPU per message of what ends a second of work."""
        before, ends_s = self.replica.end_offset, time.perf_counter() + FLUSH_EVERY_S
        while time.perf_counter() < ends_s:
            await self.turn_us(REQUESTS)
        started_s = time.process_time()
        journal.catch_up()
        spent_us = (time.process_time() - started_s) * 1e6
        messages = self.replica.end_offset - before
        self.replica.delete_before(self.replica.high_watermark)
        return spent_us / float(messages)


async def send(connection: Any, frame: bytes, count: int) -> None:
    for _ in range(count):
        buffer = connection.get_buffer(len(frame))
        buffer[: len(frame)] = frame
        connection.buffer_updated(len(frame))
        await asyncio.sleep(0)  # each comes in a turn of its own, as from many connections


def produce_frame(batch: int) -> bytes:
    records = memoryview(build_batch([(1000, None, VALUE, [])] * batch))
    data = [TopicProduceData("orders", partition_data=[PartitionProduceData(0, records)])]
    parts: Any = request_frame(ProduceRequest(None, -1, 30_000, data), LATEST_PRODUCE, 1, "bench")
    return b"".join(parts)


class Transport(asyncio.Transport):
    """Takes all that is written."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = 0

    def write(self, data: object) -> None:  # noqa: ARG002  asyncio's signature
        self.answers += 1

    def writelines(self, list_of_data: object) -> None:  # noqa: ARG002
        self.answers += 1

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def get_extra_info(self, name: str, default: Any = None) -> Any:  # noqa: ARG002
        return default

    def close(self) -> None: ...


def _ignore(*_: object) -> None:
    """Instead of a note."""


def batch_rows(batch: int, found: dict[float, list[float]]) -> Iterator[Row]:
    base = found[0.0]
    for variant, turns in found.items():
        name = f"produce, {batch} a batch, os, {NAMES[variant]}: CPU per message"
        made = row(name, median(turns), "us", None if variant == 0.0 else median(base), AIMS.get(variant))
        if variant != 0.0:
            made["ratio"] = median(one / other for one, other in zip(turns, base, strict=True))
        yield made


def note_rows() -> Iterator[Row]:
    """The call itself."""
    base = note_us(0.0)
    yield row("one note, counted only", base, "us")
    for sampling in (0.01, 1.0):
        yield row(f"one note, sampling {sampling:g}", note_us(sampling), "us", base)


def note_us(sampling: float) -> float:
    best = float("inf")
    for _ in range(NOTE_TURNS):
        journeys = Journeys(sampling)
        note, step = journeys.note, Step.RECEIVED
        started = time.process_time()
        for offset in range(NOTES):
            note(1, step, "orders", 0, offset, offset)
        best = min(best, (time.process_time() - started) / NOTES * 1e6)
        assert journeys.counts[step] == {("orders", ""): NOTES}
    return best
