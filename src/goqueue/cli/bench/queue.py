"""A topic read as a queue: how fast messages are leased and acknowledged one by one, and what each costs the broker."""

import asyncio

from confluent_kafka import KafkaException

from goqueue.cli.bench.broker import Broker
from goqueue.cli.bench.errors import BenchFailed
from goqueue.cli.bench.librdkafka import FAREWELL_S_MAX, STALL_S_MAX, Topic, own_topic
from goqueue.cli.bench.load import Load
from goqueue.cli.bench.process import MIB
from goqueue.cli.bench.report import Figure, Report
from goqueue.cli.bench.throughput import Stopwatch, produce
from goqueue.cli.progress import Progress
from goqueue.client import ClientError, Job, Worker

CONCURRENCY = 500


def bench_queue(broker: Broker, load: Load, progress: Progress) -> Report:
    """The load is our own Worker: no other client library reads as a queue over this protocol from Python."""
    with own_topic(broker, load, progress) as topic:
        produce(broker, topic, load, progress)
        stored = topic.check_stored(load.messages)
        work = _Work(broker, topic, load, progress)
        try:
            asyncio.run(work.run())
        except ClientError as error:
            raise BenchFailed(str(error)) from None
        finally:
            _forget_group(topic, progress)
        counts = {"stored": stored, "acknowledged": work.done}
        return Report(
            kind="queue",
            load=load,
            broker=broker.address,
            durability=topic.durability,
            filesystem=broker.filesystem,
            counts=counts,
            figures=_figures(broker, load, *work.times),
        )


def _forget_group(topic: Topic, progress: Progress) -> None:
    """Named as its topic. A broker keeps groups, where it shall be left as it was."""
    try:
        topic.admin.delete_consumer_groups([topic.name], request_timeout=FAREWELL_S_MAX)[topic.name].result()
    except KafkaException as error:
        progress.note(f"group {topic.name} was left behind: {error.args[0].str()}")


class _Work:
    """Every message exactly once: what comes twice or never fails the measurement."""

    def __init__(self, broker: Broker, topic: Topic, load: Load, progress: Progress) -> None:
        self._broker, self._topic, self._load, self._progress = broker, topic, load, progress
        self._seen = [bytearray() for _ in range(load.partitions)]
        self.done = 0
        self._problem = ""
        self.times: tuple[float, float | None, float] = (0.0, None, 0.0)

    async def run(self) -> None:
        worker = Worker(
            self._broker.address,
            self._topic.name,
            group=self._topic.name,
            concurrency=CONCURRENCY,
            client_id="bench",
            security=self._broker.security,
        )
        loop = asyncio.get_running_loop()

        @worker.handle
        async def note(job: Job) -> None:
            self._note(job)
            limit.reschedule(loop.time() + STALL_S_MAX)
            if self.done == self._load.messages or self._problem:
                worker.stop()

        stopwatch = Stopwatch(self._broker)
        try:
            async with asyncio.timeout(STALL_S_MAX) as limit:
                await worker.run()
        except TimeoutError:
            words = f"{self._load.messages - self.done} messages did not come within {STALL_S_MAX} s"
            raise BenchFailed(words) from None
        self.times = stopwatch.stop()
        if self._problem:
            raise BenchFailed(self._problem)

    def _note(self, job: Job) -> None:
        seen = self._seen[job.partition]
        if job.offset >= len(seen):
            seen.extend(bytes(job.offset + 1 - len(seen)))
        if seen[job.offset] or len(job.value or b"") != self._load.value_bytes:
            self._problem = f"{job.topic}/{job.partition}/{job.offset} came twice, or not as it was sent"
            return
        seen[job.offset] = 1
        self.done += 1
        self._progress.show("working", self.done, self._load.messages)


def _figures(
    broker: Broker, load: Load, seconds: float, broker_cpu_s: float | None, client_cpu_s: float
) -> dict[str, Figure]:
    per_s = load.messages / seconds
    figures = {
        "messages_per_s": Figure(per_s, "msg/s"),
        "mib_per_s": Figure(per_s * load.value_bytes / MIB, "MiB/s"),
    }
    if broker.process and broker_cpu_s is not None:
        memory = broker.process.memory()
        figures |= {
            "broker_cpu_us_per_message": Figure(broker_cpu_s / load.messages * 1e6, "us"),
            "broker_rss_mib": Figure(memory.rss_bytes / MIB, "MiB"),
            "broker_rss_anonymous_mib": Figure(memory.anonymous_bytes / MIB, "MiB"),
        }
    return figures | {"client_cpu_us_per_message": Figure(client_cpu_s / load.messages * 1e6, "us")}
