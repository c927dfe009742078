"""The Kafka door under librdkafka: throughput, what a message costs the broker, and how long one takes.

The baseline is a bare frame echo on the same event loop, driven by one plain socket: what the loop and the kernel cost.
"""

import json
import os
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

ROOT = Path(__file__).parents[1]
VALUE_BYTES = 100
QUEUED_AT_ONCE = 10_000
READY_S = 30

Row = dict[str, object]

ECHO = """
import asyncio, sys, uvloop
class Echo(asyncio.BufferedProtocol):
    buffer = memoryview(bytearray(1 << 20))
    def connection_made(self, transport): self.transport, self.left = transport, 0
    def get_buffer(self, sizehint): return self.buffer
    def buffer_updated(self, size):
        at = 0
        while at < size:
            if not self.left:
                self.left = int.from_bytes(self.buffer[at : at + 4], "big") + 4
            step = min(self.left, size - at)
            at += step
            self.left -= step
            if not self.left:
                self.transport.write(b"\\0\\0\\0\\4done")
async def main():
    server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
uvloop.run(main())
"""


def run() -> list[Row]:
    with broker() as (pid, address):
        make_topics(address)
        rows = []
        for records, count in ((1, 50_000), (100, 500_000), (1000, 500_000)):
            rows += measure_produce(pid, address, records, count)
        rows.append(measure_consume(pid, address))
        rows += [measure_latency(address, durability) for durability in ("os", "disk")]
        rows.append(row("resident memory of the broker", resident_mib(pid), "MiB", None, "< 150 MiB"))
    return rows


@contextmanager
def broker() -> Iterator[tuple[int, str]]:
    place = ROOT / "build"
    place.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place, prefix="bench-") as root:
        ready = Path(root) / "ready.json"
        command = [sys.executable, "-c", "from goqueue.cli.main import main; raise SystemExit(main())", "serve"]
        command += ["--data-dir", f"{root}/data", "--kafka", "127.0.0.1:0", "--ready-file", str(ready)]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            try:
                wait_for(ready.exists, process)
                yield process.pid, json.loads(ready.read_text("utf-8"))["kafka"]
            finally:
                process.terminate()


def wait_for(is_there: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + READY_S
    while not is_there():
        assert process.poll() is None, "the broker did not start"
        assert time.monotonic() < deadline, "the broker is not ready"
        time.sleep(0.02)


def make_topics(address: str) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    topics = [NewTopic(f"bench-{name}", 1, 1, config={"durability": name}) for name in ("os", "disk")]
    for made in admin.create_topics(topics).values():
        made.result(30)


def row(name: str, value: float, unit: str, baseline: float | None, aim: str | None) -> Row:
    ratio = None if baseline is None else value / baseline
    return {"name": name, "value": value, "unit": unit, "baseline": baseline, "ratio": ratio, "aim": aim}


def cpu_s(pid: int) -> float:
    """Of all threads that live; to the nanosecond, where /proc/<pid>/stat counts ticks of 10 ms."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text("utf-8").split()[0]) for thread in threads) / 1e9


def resident_mib(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text("utf-8").split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def measure_produce(pid: int, address: str, records: int, count: int) -> list[Row]:
    producer = Producer(
        {
            "bootstrap.servers": address,
            "linger.ms": 0 if records == 1 else 50,
            "batch.num.messages": records,
            "batch.size": 10_000_000,
            "queue.buffering.max.messages": 1_000_000,
            "acks": "all",
        }
    )
    producer.list_topics(timeout=10)
    failed = []

    def delivered(error: object, _message: Message) -> None:
        if error is not None:
            failed.append(error)

    # In bulk, lest the broker mostly sleeps: it would be woken for each request, and a wake-up alone costs 40 us here.
    messages = [{"value": b"x" * VALUE_BYTES}] * QUEUED_AT_ONCE
    cpu, started = cpu_s(pid), time.perf_counter()
    for _ in range(count // QUEUED_AT_ONCE):
        assert producer.produce_batch("bench-os", messages, partition=0, on_delivery=delivered) == QUEUED_AT_ONCE
    assert producer.flush(120) == 0
    assert not failed
    taken, cpu = time.perf_counter() - started, cpu_s(pid) - cpu
    frames = max(1, count // records)
    raw_us = echo_us(min(frames, 20_000), 61 + records * (VALUE_BYTES + 10) + 60)
    aims = {1: "< 10 us a request", 100: "< 0.5 us a message"}
    return [
        row(f"produce, {records} a batch", count / taken, "msg/s", None, "> 100,000 msg/s" if records > 1 else None),
        row(f"broker CPU, {records} a batch", cpu / frames * 1e6, "us/request", raw_us, aims.get(records)),
    ]


def echo_us(frames: int, size: int) -> float:
    """CPU of the echo's process per frame."""
    with subprocess.Popen([sys.executable, "-c", ECHO], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        frame = struct.pack(">i", size) + bytes(size)
        with socket.create_connection(("127.0.0.1", port)) as connection:
            cpu = cpu_s(process.pid)
            in_flight = received = 0
            for _ in range(frames):
                connection.sendall(frame)
                in_flight += 1
                if in_flight == 5:
                    received += len(connection.recv(65536))
                    in_flight = 0
            while received < frames * 8:
                received += len(connection.recv(65536))
            cpu = cpu_s(process.pid) - cpu
        process.terminate()
    return cpu / frames * 1e6


def measure_consume(pid: int, address: str) -> Row:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "bench", "fetch.max.bytes": 50_000_000})
    _, end = consumer.get_watermark_offsets(TopicPartition("bench-os", 0), timeout=10)
    consumer.assign([TopicPartition("bench-os", 0, 0)])
    cpu, count = cpu_s(pid), 0
    while count < end:
        messages = consumer.consume(10_000, timeout=30)
        assert messages
        assert not any(message.error() for message in messages)
        count += len(messages)
    cpu = cpu_s(pid) - cpu
    consumer.close()
    return row("broker CPU, consume", cpu / count * 1e6, "us/msg", None, None)


def measure_latency(address: str, durability: str) -> Row:
    """One message in flight, from produce to its acknowledgement, as the client sees it."""
    producer = Producer({"bootstrap.servers": address, "linger.ms": 0, "acks": "all"})
    samples = []
    for _ in range(2000):
        started = time.perf_counter()
        producer.produce(f"bench-{durability}", b"x" * VALUE_BYTES, partition=0)
        assert producer.flush(30) == 0
        samples.append((time.perf_counter() - started) * 1000)
    aim = "< 2 ms" if durability == "os" else "< 10 ms"
    return row(f"publish, durability {durability}, p99", statistics.quantiles(samples, n=100)[-1], "ms", None, aim)
