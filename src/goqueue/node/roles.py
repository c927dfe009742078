"""Coordinators and standbys of a node in a cluster follow the roles of its copies: those of shards have a role of their
own, deliveries and delays that of their partition.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from goqueue.broker.delays.schedules import Schedules
from goqueue.broker.queues.queues import Queues
from goqueue.broker.transactions.transactions import Transactions
from goqueue.model.names import LEDGER_PREFIX
from goqueue.model.topics import Topic, TopicsChange
from goqueue.replica.replica import Replica
from goqueue.replica.replicas import Replicas
from goqueue.runtime.clock import Clock
from goqueue.runtime.coordinators import Coordinators
from goqueue.runtime.keeping import Keeping
from goqueue.runtime.standby import StandbyCounts
from goqueue.telemetry.calls import call_each

DELAYS = "delays"
DELIVERIES = "deliveries"
Key = tuple[bytes, int]
"""Topic id and partition."""


class Roles:
    """Subscribed to `Replicas.on_role` before anything is opened."""

    def __init__(
        self,
        replicas: Replicas,
        clock: Clock,
        shards: Mapping[str, Keeping[int, Any]],
        companions: Mapping[str, Keeping[Key, Any]],
        find_topic: Callable[[bytes], Topic | None],
    ) -> None:
        """`find_topic`: by id, in the newest metadata."""
        self._replicas = replicas
        self._clock = clock
        self._shards = shards
        self._companions = companions
        self._find_topic = find_topic
        self._topics: dict[bytes, Topic] = {}
        """Whose companions were led here: one that is gone is not found any more."""
        self.on_host: list[Callable[[tuple[str, int]], None]] = []
        """Called with a partition whose copy here has another role."""
        replicas.on_role.append(self.role_changed)

    def serve_shards(self, kind: str, coordinators: Coordinators[int, Any]) -> None:
        """Whoever leads a shard of this kind is its coordinator."""
        keeping = self._shards[kind]

        def led(number: int) -> None:
            replica = self._replicas.find(f"{LEDGER_PREFIX}{kind}", number)
            assert replica is not None, (kind, number)
            keeping.load(coordinators.add(number, keeping.open(number, replica)))

        keeping.on_led, keeping.on_lost = led, coordinators.unload

    def serve_partitions(self, queues: Queues, schedules: Schedules, transactions: Transactions) -> None:
        self._serve(DELIVERIES, queues.companions.lead, queues.companions.lose)
        self._serve(DELAYS, schedules.lead, schedules.lose)
        self.on_host.append(transactions.verified.forget_place)

    def _serve(self, kind: str, lead: Callable[[Topic, int], None], lose: Callable[[Topic, int], None]) -> None:
        keeping = self._companions[kind]

        def led(key: Key) -> None:
            topic = self._find_topic(key[0])
            if topic is not None:  # else it is being deleted
                self._topics[topic.id] = topic
                lead(topic, key[1])

        def lost(key: Key) -> None:
            topic = self._topics.get(key[0])
            if topic is not None:
                lose(topic, key[1])

        keeping.on_led, keeping.on_lost = led, lost

    def role_changed(self, replica: Replica) -> None:
        name, number = replica.place
        if not name.startswith(LEDGER_PREFIX):
            call_each(partial(call, replica.place) for call in self.on_host)
            self._replicas.host_changed(replica, self._clock.now_ms())
            return
        kind, _, host = name.removeprefix(LEDGER_PREFIX).partition(".")
        if not host:
            if kind in self._shards:
                self._shards[kind].role_changed(number, replica)
        elif kind in self._companions:
            self._companions[kind].role_changed((bytes.fromhex(host), number), replica)

    def topics_changed(self, change: TopicsChange) -> None:
        """Standbys go with their topics. Coordinators were unloaded by those who keep them."""
        for topic in change.gone:
            self._topics.pop(topic.id, None)
            for keeping in self._companions.values():
                for key in [key for key in keeping.standbys if key[0] == topic.id]:
                    keeping.forget(key)

    def standbys(self) -> StandbyCounts:
        """How far they are behind what is committed."""
        every = [each for keeping in self._all() for each in keeping.standbys.values()]
        lag_max = max((each.lag for each in every), default=0)
        return StandbyCounts(len(every), sum(each.is_behind for each in every), lag_max)

    def stop(self) -> None:
        for keeping in self._all():
            keeping.stop()

    def _all(self) -> Iterator[Keeping[Any, Any]]:
        yield from self._shards.values()
        yield from self._companions.values()
