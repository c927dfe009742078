"""The same with the group protocol of KIP-848, by librdkafka: the broker assigns, and fences by the member's epoch."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import confluent_kafka as ck

from tools.nemesis.workloads import kafka
from tools.nemesis.workloads.common import ANSWER_S_MAX, Run, make_topic
from tools.nemesis.workloads.groups import feed, note_consumed
from tools.nemesis.workloads.lives import Life, live

GROUP = "nemesis-consumers"
DOOR = "kafka 848"
POLL_MS_MAX = 60_000
"""A member that was given up is out of the group after so long."""
LIVES_S = (1e9, 12.0)
"""How long each member stays before it leaves and comes back."""


class ConsumerGroups:
    name = "groups-848"

    def __init__(self, topic: str = "nemesis-shared-848", partitions: int = 4) -> None:
        self._topic, self._partitions = topic, partitions

    def prepare(self, run: Run) -> None:
        make_topic(run, self._topic, self._partitions)

    def threads(self, run: Run) -> dict[str, Callable[[], None]]:
        found: dict[str, Callable[[], None]] = {"feeder-848": partial(feed, run, self._topic, self._partitions)}
        for number, life_s in enumerate(LIVES_S):
            name = f"member-848-{number}"
            found[name] = partial(self._be_member, run, name, life_s)
        return found

    def finish(self, run: Run) -> None:
        """What members were told is all there is to judge."""

    def _be_member(self, run: Run, name: str, life_s: float) -> None:
        """A commit has no time limit, and librdkafka asks for a coordinator as long as none answers."""
        live(run, name, partial(self._live, run, name, life_s))

    def _live(self, run: Run, name: str, life_s: float, life: Life) -> None:
        mine: dict[str, Any] = {"bootstrap.servers": run.bootstrap, "group.id": GROUP, "group.protocol": "consumer"}
        mine |= {"max.poll.interval.ms": POLL_MS_MAX}
        mine |= {"enable.auto.commit": False, "auto.offset.reset": "earliest", "fetch.wait.max.ms": 100}
        consumer = ck.Consumer(kafka.QUIET | mine | kafka.TELLING | {"client.id": life.name})
        consumer.subscribe([self._topic])
        until = time.monotonic() + life_s
        while life.goes_on() and time.monotonic() < until:
            for number, records in kafka.portion(consumer, 0.3, 50)[0].items():
                offsets = [offset for offset, _ in records]
                note_consumed(run, name, GROUP, [self._topic, number], offsets)
                life.beat()
                self._commit(run, name, consumer, number, offsets[-1] + 1)
            for place in _assignment(consumer):
                life.beat()
                self._ask(run, name, consumer, place.partition)
        life.beat()
        consumer.close()

    def _commit(self, run: Run, name: str, consumer: ck.Consumer, partition: int, offset: int) -> None:
        """An error is no proof that it was not done: librdkafka asks again by itself, and tells of the last answer."""
        where = {"group": GROUP, "partition": [self._topic, partition]}
        asking = run.book.begin(name, "commit", **where, offset=offset, door=DOOR)
        place = ck.TopicPartition(self._topic, partition, offset)
        try:
            refused = [each.error for each in consumer.commit(offsets=[place], asynchronous=False) if each.error]
        except ck.KafkaException as error:
            asking.unknown(error)
            return
        if refused:
            asking.unknown(refused[0])
        else:
            asking.ok()

    def _ask(self, run: Run, name: str, consumer: ck.Consumer, partition: int) -> None:
        where = {"group": GROUP, "partition": [self._topic, partition]}
        asking = run.book.begin(name, "committed", **where, door=DOOR)
        try:
            (place,) = consumer.committed([ck.TopicPartition(self._topic, partition)], ANSWER_S_MAX)
        except ck.KafkaException as error:
            asking.fail(error)
            return
        if place.error is not None:
            asking.fail(place.error)
        else:
            asking.ok(offset=max(place.offset, -1))


def _assignment(consumer: ck.Consumer) -> list[Any]:
    try:
        return list(consumer.assignment())
    except ck.KafkaException:
        return []
