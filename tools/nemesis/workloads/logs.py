"""Idempotent producers with acks=all, several messages under way at a time, and a reader that follows them.

No message may time out in the client: librdkafka would then take another epoch, and send with it once more what is
under way and may be there already. No broker can know those.
"""

from collections.abc import Callable
from functools import partial

import confluent_kafka as ck

from tools.nemesis.history import Asking
from tools.nemesis.workloads import kafka
from tools.nemesis.workloads.common import Run, make_topic

PER_S = 60
PATIENT = {"delivery.timeout.ms": 3_600_000}
FLUSH_S_MAX = 60
DOOR = "kafka"


class Logs:
    name = "logs"

    def __init__(self, topic: str = "nemesis-log", partitions: int = 3, producers: int = 2) -> None:
        self._topic, self._partitions, self._producers = topic, partitions, producers

    def prepare(self, run: Run) -> None:
        make_topic(run, self._topic, self._partitions)

    def threads(self, run: Run) -> dict[str, Callable[[], None]]:
        found: dict[str, Callable[[], None]] = {
            f"producer-{number}": partial(self._produce, run, f"producer-{number}") for number in range(self._producers)
        }
        return found | {"log-reader": partial(self._follow, run)}

    def _produce(self, run: Run, name: str) -> None:
        dice = run.dice(name)
        lives = 0
        producer = kafka.producer(run, **PATIENT)
        for number in range(1_000_000):
            if run.is_ending.wait(1 / PER_S):
                break
            partition, value = dice.randrange(self._partitions), f"{name}:{number}"
            asking = run.book.begin(
                f"{name}.{lives}", "send", topic=self._topic, partition=partition, value=value, door=DOOR
            )
            try:
                producer.produce(self._topic, value, partition=partition, on_delivery=partial(_delivered, asking))
            except (BufferError, ck.KafkaException) as error:
                asking.fail(error)
                lives += 1
                producer.flush(1)
                producer = kafka.producer(run, **PATIENT)
            producer.poll(0)
        if producer.flush(FLUSH_S_MAX):
            run.problems.append(f"{name} was not answered when all was healed")

    def _follow(self, run: Run) -> None:
        consumer = kafka.reader(run, self._topic, [0] * self._partitions)
        while not run.is_ending.is_set():
            asking = {
                number: run.book.begin("log-reader", "read", topic=self._topic, partition=number, door=DOOR)
                for number in range(self._partitions)
            }
            records, _ = kafka.portion(consumer, 0.5)
            for number, each in asking.items():
                if number in records:
                    each.ok(records=records[number])
                else:
                    each.unknown("nothing came")
        consumer.close()

    def finish(self, run: Run) -> None:
        for number, records in kafka.read_all(run, self._topic, self._partitions):
            run.book.begin(
                "log-end", "read", topic=self._topic, partition=number, final=True, start=0, door="kafka, at the end"
            ).ok(records=records)


def _delivered(asking: Asking, error: ck.KafkaError | None, message: ck.Message) -> None:
    if error is None:
        asking.ok(offset=message.offset())
    else:
        asking.unknown(error)
