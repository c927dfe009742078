"""A load forgets which places are open. They are opened again before anybody is served, and what they know of records
that their log has lost is dropped for good: others will stand there.
"""

from collections.abc import Callable, Iterator
from functools import partial

from goqueue.broker.queues.companions import DeliveryCompanions, OnOpened
from goqueue.broker.queues.lost_ends import LostEnds
from goqueue.broker.topics.topics import Topics
from goqueue.machines.deliveries.commands import OpenDelivery, Place, Policy
from goqueue.machines.deliveries.machine import Deliveries
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.topics import Topic
from goqueue.runtime.clock import Clock
from goqueue.runtime.coordinator import Coordinator
from goqueue.runtime.life import Life

RETRY_MS = 1000


class Reopening:
    def __init__(
        self,
        companions: DeliveryCompanions,
        lost_ends: LostEnds,
        topics: Topics,
        clock: Clock,
        policy: Callable[[str, Topic], Policy],
    ) -> None:
        self._companions = companions
        self._lost_ends = lost_ends
        self._topics = topics
        self._clock = clock
        self._policy = policy

    def commands(
        self, coordinator: Coordinator[Deliveries], topic: Topic, partition: int, machine: Deliveries
    ) -> Iterator[tuple[OpenDelivery, OnOpened]]:
        """One for each place; taken one by one, in slices."""
        # Not the high watermark, which a new leader knows only by and by: all that was ever leased is below the end.
        topic = self._topics.image.by_id(topic.id) or topic  # its options may have changed since the last load
        host = self._topics.find_replica(topic.name, partition)
        log_end = None if host is None else host.end_offset
        for group_id in machine.groups():
            for place in machine.places(group_id):
                if log_end is not None:
                    self._lost_ends.note(place, log_end)
                yield self._opening(coordinator, place, topic, machine.start_offset(place))

    def _opening(
        self, coordinator: Coordinator[Deliveries], place: Place, topic: Topic, start_offset: int
    ) -> tuple[OpenDelivery, OnOpened]:
        def opened(reply: Code | GoQueueError) -> None:
            self._lost_ends.tried(place, coordinator, reply)
            if isinstance(reply, GoQueueError) and reply.retriable:  # no room for what has to be dropped
                self._open_later(coordinator, place, topic, start_offset)

        policy = self._policy(place.group_id, topic)
        return OpenDelivery(place, topic.id, start_offset, policy, self._lost_ends.of(place)), opened

    def _open_later(self, coordinator: Coordinator[Deliveries], place: Place, topic: Topic, start_offset: int) -> None:
        self._clock.call_after(RETRY_MS, partial(self._open_again, coordinator, place, topic, start_offset))

    def _open_again(self, coordinator: Coordinator[Deliveries], place: Place, topic: Topic, start_offset: int) -> None:
        if self._companions.at((place.topic, place.partition)) is not coordinator:
            self._lost_ends.forget(place, coordinator)
        elif coordinator.life is Life.LOADING:  # others are being opened
            self._open_later(coordinator, place, topic, start_offset)
        elif coordinator.is_active and not coordinator.peek().is_open(place):  # else a consumer came
            known = self._topics.image.topics.get(topic.name, topic)
            coordinator.submit(*self._opening(coordinator, place, known, start_offset))
