"""Queue reads: records leased from many partitions at once, parked without a task until some are ready."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

from goqueue.broker.queues.leased_records import Leased, LeasedRecords
from goqueue.broker.queues.queue_groups import stream_refusal
from goqueue.broker.queues.queues import Queues
from goqueue.broker.queues.taking import LeasedPlace, Parked, ReceiveRequest, Taking
from goqueue.broker.topics.topics import Topics
from goqueue.machines.deliveries.commands import How, LeasedRun, Place
from goqueue.model.again import Again
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.receipts import NAME_BYTES_MAX
from goqueue.model.refusal import Refused
from goqueue.runtime.clock import Clock, Timer
from goqueue.telemetry.calls import call_each
from goqueue.telemetry.meters import Meters

ALL_OPEN = object()
_new_tuple = tuple.__new__

OnLeased: TypeAlias = Callable[[list[LeasedPlace]], None]


def check_group_id(group_id: str) -> None:
    if not 0 < len(group_id) <= NAME_BYTES_MAX or (
        not group_id.isascii() and len(group_id.encode(errors="replace")) > NAME_BYTES_MAX
    ):
        raise Refused(Code.INVALID_GROUP_ID, f"the name of a group has 1 to {NAME_BYTES_MAX} bytes")


class Receiver:
    def __init__(self, queues: Queues, topics: Topics, clock: Clock, meters: Meters) -> None:
        self.queues = queues
        self.meters = meters
        self.clock = clock
        self._topics = topics
        self.taking = Taking(queues, self.look_further)
        self._records = LeasedRecords()
        self._parked: dict[Place, dict[Receiving, None]] = {}
        """Who waits, by place, the longest first."""
        self._looking: set[Place] = set()
        self._turn = 0
        self.spread: Callable[[ReceiveRequest, OnLeased], Parked | None] | None = None
        """In a cluster: asks the leaders of the places."""
        queues.on_woken.append(self._wake)

    def receive(self, request: ReceiveRequest, on_leased: OnLeased) -> Parked | None:
        """Answer at once, or later: then what is returned can be cancelled. Refused: no name for a group, or that of
        one that is no queue.
        """
        if self.spread is None or not request.is_opened:
            return self.receive_here(request, on_leased)
        return self.spread(request, on_leased)

    def receive_here(self, request: ReceiveRequest, on_leased: OnLeased) -> Parked | None:
        """As `receive`, from partitions that this node leads."""
        if not request.is_opened and (plain := self.receive_plain(request)) is not None:
            on_leased([plain])
            return None
        leased = self._take_at_once(request) if request.is_opened else None
        check_group_id(request.group_id)  # who has leased something has a name that was checked
        self._turn += 1
        receiving = Receiving(self, request, on_leased, self._turn)
        if leased is None:
            receiving.start()
        else:
            receiving.finish([leased])
        return None if receiving.is_over else receiving

    def receive_plain(self, request: ReceiveRequest) -> LeasedPlace | None:
        """At once, if it takes no more than what most consumers do, and stores nothing. None: nothing was done.
        Refused: as `receive`."""
        leased = self._take_at_once(request)
        if leased is None or leased.slices is None:
            return None
        self.meters.received(leased.topic, request.group_id, leased.slices.size_bytes)
        return leased

    def _take_at_once(self, request: ReceiveRequest) -> LeasedPlace | None:
        """What most consumers do: take what comes next in one place. None: it takes more than that, or will fail."""
        if not request.is_member and self.queues.is_stream(request.group_id):
            raise stream_refusal(request.group_id)
        if len(request.places) != 1:
            return None
        ((topic, partition),) = request.places
        place = _new_tuple(Place, (request.group_id, topic, partition))
        try:
            leased = self.taking.plain(place, request, request.records_max, request.bytes_max, is_first=True)
        except GoQueueError:
            return None  # whoever takes the longer way meets it again
        return leased if leased is not None and leased.slices is not None and leased.slices.runs else None

    def measure(self, group_id: str, leased: Sequence[LeasedPlace]) -> None:
        self.meters.polled(group_id, is_empty=not leased)
        for one in leased:
            if one.slices is not None:
                self.meters.delivered(one.topic, group_id, one.slices.size_bytes)

    def read(self, leased: LeasedPlace, group_id: str) -> list[Leased]:
        """The records of what was leased, urgent ones first. What cannot be read is rejected: nobody could ever settle
        it. What would take too long to unpack is given back, as if it had not been leased: whoever asks next gets it.
        """
        if leased.records is not None:
            return list(leased.records)
        assert leased.slices is not None
        assert leased.replica is not None
        place = Place(group_id, leased.topic, leased.partition)
        try:
            found, unreadable, not_reached = self._records.read(leased.replica, leased.slices)
        except GoQueueError:
            self.settle_runs(place, leased.slices.runs, leased.lease, How.UNDO)  # it reached nobody
            raise
        if unreadable:
            self.settle_runs(place, unreadable, leased.lease, How.REJECT, "unreadable")
        if not_reached:
            self.settle_runs(place, not_reached, leased.lease, How.UNDO)
        if len(leased.order) > 1:
            rank = {first: number for number, first in enumerate(leased.order)}
            found.sort(key=lambda one: rank.get(one[1].first, 0))
        return found

    def open(self, leased: Iterable[LeasedPlace]) -> Iterator[None]:
        """Unpack the first record of each. Yields where others may have their turn."""
        for one in leased:
            if one.slices is not None and one.replica is not None and one.slices.runs:
                yield from self._records.open(one.replica, one.slices)

    def give_back(self, leased: Iterable[LeasedPlace], group_id: str) -> None:
        """It reached nobody."""
        for one in leased:
            if one.slices is not None:
                place = Place(group_id, one.topic, one.partition)
                self.settle_runs(place, one.slices.runs, one.lease, How.UNDO)

    def settle_runs(self, place: Place, runs: Sequence[LeasedRun], lease: int, how: How, reason: str = "") -> None:
        self.taking.settle_runs(place, runs, lease, how, reason)

    # -- waiting

    def park(self, place: Place, receiving: "Receiving") -> None:
        waiting = self._parked.get(place)
        if waiting is None:
            waiting = self._parked[place] = {}
            self._topics.replica(place.topic, place.partition).watch(("queue", place), lambda: self._wake(place))
        waiting[receiving] = None

    def unpark(self, place: Place, receiving: "Receiving") -> None:
        waiting = self._parked.get(place)
        if waiting is None:
            return
        waiting.pop(receiving, None)
        if not waiting:
            del self._parked[place]
            self._topics.unwatch(place.topic, place.partition, ("queue", place))

    def is_asked(self, place: Place) -> bool:
        """Whether a consumer waits there now."""
        return bool(self._parked.get(place))

    def look_further(self, place: Place) -> None:
        """Much lies in the log that nobody has looked at: the rest of it, in turns."""
        if place in self._looking:
            return

        def look() -> None:
            self._looking.discard(place)
            try:
                replica = self.queues.observe(place)
            except GoQueueError:
                return  # whoever receives there is told
            if self.queues.is_behind(place, replica):
                self.look_further(place)

        self._looking.add(place)
        self.clock.call_soon(look)

    def _wake(self, place: Place) -> None:
        call_each(self._woken(place))

    def _woken(self, place: Place) -> Iterator[Callable[[], None]]:
        for receiving in list(self._parked.get(place, ())):
            if self.queues.is_busy(place):  # leases come at once or not at all
                self.clock.call_soon(lambda: self._wake(place))
                return
            yield partial(receiving.look_again, place)
            if not receiving.has_failed and not self.queues.has_ready(place):
                return


class Receiving:
    """One request that may wait: an entry in the places it watches and one timer, no task."""

    def __init__(self, receiver: Receiver, request: ReceiveRequest, on_leased: OnLeased, turn: int) -> None:
        self._receiver = receiver
        self._request = request
        self._on_leased = on_leased
        self._places = [Place(request.group_id, topic, partition) for topic, partition in request.places]
        self._failed: list[LeasedPlace] = []
        self._timer: Timer | None = None
        self._first = turn % max(1, len(self._places))
        self.is_over = False
        self._is_opening = False
        """It has what it shall answer with, and unpacks the first record of it, in turns."""

    def start(self) -> None:
        queues = self._receiver.queues
        unopened = [place for place in self._places if not queues.is_open(place)]
        waiting = len(unopened)

        def opened(place: Place, error: GoQueueError | None) -> None:
            nonlocal waiting
            waiting -= 1
            if error is not None:
                self._failed.append(LeasedPlace(place.topic, place.partition, error))
                self._places.remove(place)
            if not waiting and not self.is_over:
                self._receiver.clock.call_soon(self._begin)

        if not unopened:
            self._begin()
        for place in unopened:
            queues.open(
                place,
                self._request.start,
                lambda error, place=place: opened(place, error),  # type: ignore[misc]
                is_member=self._request.is_member,
            )

    def _begin(self) -> None:
        if self.is_over:
            return
        if any(map(self._receiver.queues.is_busy, self._places)):
            self._receiver.clock.call_soon(self._begin)  # asked from within a reply: leases come at once or not at all
            return
        leased = self._take(self._places[self._first :] + self._places[: self._first])
        if leased or self._failed or self._request.wait_ms <= 0:
            self.finish(leased)
            return
        self._timer = self._receiver.clock.call_after(self._request.wait_ms, lambda: self.finish([]))
        for place in self._places:
            self._receiver.park(place, self)

    @property
    def has_failed(self) -> bool:
        """A place of it is out of service: whoever else waits there must hear of it too."""
        return bool(self._failed)

    def look_again(self, place: Place) -> None:
        if self._is_opening:
            return
        leased = self._take([place])
        if leased or self._failed:
            self.finish(leased)

    def _take(self, places: Sequence[Place]) -> list[LeasedPlace]:
        found: list[LeasedPlace] = []
        records, size = self._request.records_max, self._request.bytes_max
        for place in places:
            if records <= 0 or size <= 0:
                break
            try:
                leased = self._take_from(place, records, size)
            except GoQueueError as error:
                self._failed.append(LeasedPlace(place.topic, place.partition, error.kept()))
                continue
            if leased is None or leased.slices is None:
                continue
            if leased.slices.runs:
                found.append(leased)
                records -= sum(run.last - run.first + 1 for run in leased.slices.runs)
                size -= leased.slices.size_bytes
            if leased.slices.left_out:
                break  # full: what is leased behind it would be given back as well
        return found

    def _take_from(self, place: Place, records_max: int, bytes_max: int) -> LeasedPlace | None:
        receiver, request = self._receiver, self._request
        is_first = bytes_max == request.bytes_max
        leased = receiver.taking.plain(place, request, records_max, bytes_max, is_first=is_first)
        if leased is None:
            leased = receiver.taking.take(place, request, records_max, bytes_max, is_first=is_first)
        return leased

    def finish(self, leased: list[LeasedPlace]) -> None:
        if self.is_over or self._is_opening:
            return
        self._stop_waiting()
        self._is_opening = True
        if not self._request.is_opened:
            self._give(leased)
            return
        opening = self._receiver.open(leased)

        def step(again: Again) -> None:
            if self.is_over:
                self._receiver.give_back(leased, self._request.group_id)
            elif next(opening, ALL_OPEN) is ALL_OPEN:
                self._give(leased)
            else:
                self._receiver.clock.call_soon(again)

        Again(step)()

    def _give(self, leased: list[LeasedPlace]) -> None:
        self.is_over = True
        self._receiver.measure(self._request.group_id, leased)
        self._on_leased(leased + self._failed)

    def cancel(self) -> None:
        """Its client is gone."""
        self.is_over = True
        self._stop_waiting()

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            for place in self._places:
                self._receiver.unpark(place, self)
