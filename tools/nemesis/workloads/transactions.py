"""Transactions that read some lists and append to others. A list is a partition, read as committed."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any

import confluent_kafka as ck

from tools.nemesis.history import Asking
from tools.nemesis.workloads import kafka
from tools.nemesis.workloads.common import Run, make_topic
from tools.nemesis.workloads.lives import Life, live

WRITERS = 2
LISTS = 3
COMMITTED = {"isolation.level": "read_committed"}
ABORTED_SHARE = 0.1
CALL_S = 15.0


class Transactions:
    name = "transactions"

    def __init__(self, topic: str = "nemesis-lists") -> None:
        self._topic = topic

    def prepare(self, run: Run) -> None:
        make_topic(run, self._topic, LISTS)

    def threads(self, run: Run) -> dict[str, Callable[[], None]]:
        return {f"writer-{number}": partial(self._write, run, f"writer-{number}") for number in range(WRITERS)}

    def _write(self, run: Run, name: str) -> None:
        live(run, name, partial(self._live, run, name, run.dice(name), itertools.count(1)))

    def _live(self, run: Run, name: str, dice: Random, numbers: Iterator[int], life: Life) -> None:
        source = kafka.reader(run, self._topic, [0] * LISTS, **COMMITTED)
        producer: ck.Producer | None = None
        while life.goes_on():
            run.is_ending.wait(0.05)
            if producer is None:
                producer = _begin_life(run, name, life.name)
                continue
            steps = _appends(name, next(numbers), dice)
            asking = run.book.begin(name, "transaction", steps=steps, door="kafka")
            records, _ = kafka.portion(source, 0.1)
            reads = [[str(key), [value for _, value in values]] for key, values in sorted(records.items())]
            if not self._run_one(producer, steps, reads, asking, life, is_aborted=dice.random() < ABORTED_SHARE):
                producer = None
        life.beat()
        source.close()

    def _run_one(
        self,
        producer: ck.Producer,
        steps: list[list[str]],
        reads: list[Any],
        asking: Asking,
        life: Life,
        *,
        is_aborted: bool,
    ) -> bool:
        """False: this producer is of no more use."""
        try:
            producer.begin_transaction()
            for _, key, value in steps:
                producer.produce(self._topic, value, partition=int(key))
            if is_aborted:
                producer.flush(CALL_S)  # or librdkafka throws them away, and the broker never hears of any of it
                life.beat()
                producer.abort_transaction(CALL_S)
                asking.fail("aborted on purpose")
                return True
        except ck.KafkaException as error:
            asking.fail(error)  # nobody has asked for a commit: its successor's first step aborts it
            return False
        life.beat()
        try:
            producer.commit_transaction(CALL_S)
        except ck.KafkaException as error:
            if not error.args[0].txn_requires_abort():
                asking.unknown(error)
                return False
            life.beat()
            with suppress(ck.KafkaException):
                producer.abort_transaction(CALL_S)
                asking.fail(error)
                return True
            asking.unknown(error)
            return False
        asking.ok(reads=reads)
        return True

    def finish(self, run: Run) -> None:
        for name in (f"writer-{number}" for number in range(WRITERS)):
            if _begin_life(run, name, f"{name}.end") is None:  # ends what its last life left open
                run.problems.append(f"{run.notes[-1]}, when all was healed")
        reads = []
        for number, records in kafka.read_all(run, self._topic, LISTS, **COMMITTED):
            reads.append([str(number), [value for _, value in records]])
        run.book.begin("lists-end", "transaction", steps=[], final=True, door="kafka, at the end").ok(reads=reads)


def _appends(name: str, number: int, dice: Random) -> list[list[str]]:
    """To one, two or three lists, in any order; sometimes twice to one."""
    keys = dice.sample(range(LISTS), dice.randint(1, LISTS))
    if dice.random() < 0.3:
        keys.append(keys[0])
    return [["append", str(key), f"{name}:{number}:{place}"] for place, key in enumerate(keys)]


def _begin_life(run: Run, name: str, client_id: str) -> ck.Producer | None:
    settings = {"transactional.id": f"nemesis-{name}", "transaction.timeout.ms": 20_000, "client.id": client_id}
    producer = kafka.producer(run, **settings, **kafka.TELLING)
    try:
        producer.init_transactions(CALL_S)
    except ck.KafkaException as error:
        run.notes.append(f"{name} could not begin: {error}")
        return None
    return producer
