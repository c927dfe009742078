"""Queue reads from partitions of several leaders.

A receive that does not wait asks one leader after the other, each time another one first, until one has something. One
that waits asks one, and parks with all of them if that has nothing: the first answer wins, the others are taken back,
and what they have leased meanwhile is given back, since it reached nobody.
"""

from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from goqueue.broker.forwarding.calls import Call, OnDone, TellableError
from goqueue.broker.forwarding.forwarding import Forwarding
from goqueue.broker.forwarding.parts import Spot, check_leads
from goqueue.broker.queues.leased_records import Leased, LeasedSlices
from goqueue.broker.queues.receive import OnLeased, Receiver, check_group_id
from goqueue.broker.queues.taking import LeasedPlace, Parked, ReceiveRequest
from goqueue.machines.deliveries.commands import LeasedRun
from goqueue.model.errors import GoQueueError
from goqueue.ports.forwarding import NotHere, Stop
from goqueue.records.decode import PlainRecord

ANSWER_MS_MAX = 5000
"""What an answer may take beyond the time that its question waits."""
PARK_AGAIN_MS = 200


class Taken(msgspec.Struct, array_like=True):
    """What was leased in one partition."""

    topic: str
    partition: int
    lease: int
    deadline_ms: int
    runs: list[LeasedRun]
    records: list[tuple[PlainRecord, LeasedRun]]
    """In the order in which lanes were served."""
    error: TellableError | None = None
    end: int = 0
    """The high watermark."""
    epoch: int = 0
    """In which it was leased. Whoever has asked may know of a later one by now."""

    def place(self) -> LeasedPlace:
        if self.error is not None:
            return LeasedPlace(self.topic, self.partition, self.error.error())
        slices = LeasedSlices([], self.runs, [])
        return LeasedPlace(
            self.topic,
            self.partition,
            None,
            slices,
            self.lease,
            self.deadline_ms,
            records=self.records,
            end=self.end,
            epoch=self.epoch,
        )


RECEIVE: Call[ReceiveRequest, list[Taken]] = Call("receive", ReceiveRequest, list[Taken])


class SpreadReceiver:
    """What `Receiver.receive` does in a cluster."""

    def __init__(self, forwarding: Forwarding, receiver: Receiver) -> None:
        self.forwarding = forwarding
        self.receiver = receiver
        self._turn = 0
        receiver.spread = self.receive
        RECEIVE.serve(forwarding, self._serve)

    def receive(self, request: ReceiveRequest, on_leased: OnLeased) -> Parked | None:
        by_node = self.divide(request.places)
        if by_node.keys() <= {self.forwarding.homes.me}:
            return self.receiver.receive_here(request, on_leased)
        check_group_id(request.group_id)
        if not request.is_member:
            self.receiver.queues.check_is_queue(request.group_id)
        self._turn += 1
        receiving = SpreadReceiving(self, request, on_leased)
        receiving.start(by_node, self._turn)
        return receiving

    def divide(self, spots: Sequence[Spot]) -> dict[int | None, list[Spot]]:
        by_node: dict[int | None, list[Spot]] = {}
        for spot in spots:
            by_node.setdefault(self.forwarding.homes.partition(*spot), []).append(spot)
        return by_node

    def _serve(self, request: ReceiveRequest, timeout_ms: int, on_reply: OnDone[list[Taken]]) -> Stop | None:
        for topic, partition in request.places:
            check_leads(self.forwarding, topic, partition)
        wait_ms = max(0, min(request.wait_ms, timeout_ms))

        def leased(found: list[LeasedPlace]) -> None:
            on_reply([self._taken(one, request) for one in found])

        parked = self.receiver.receive_here(request._replace(wait_ms=wait_ms), leased)
        return None if parked is None else parked.cancel

    def _taken(self, leased: LeasedPlace, request: ReceiveRequest) -> Taken:
        records: list[Leased] = []
        error = leased.error
        if error is None and request.is_read:
            try:
                records = self.receiver.read(leased, request.group_id)
            except GoQueueError as failure:
                error = failure.kept()
        if error is not None or leased.slices is None:
            told = None if error is None else TellableError.of(error)
            return Taken(leased.topic, leased.partition, 0, 0, [], [], told)
        plain = [(PlainRecord(r.offset, r.timestamp, r.key, r.value, list(r.headers)), run) for r, run in records]
        runs = leased.slices.runs
        if request.is_read:
            runs = [LeasedRun(r.offset, r.offset, run.attempt, run.first_delivered_ms) for r, run in records]
        end = 0 if leased.replica is None else leased.replica.high_watermark
        spot, epoch = (leased.topic, leased.partition), leased.epoch
        return Taken(*spot, leased.lease, leased.deadline_ms, runs, plain, end=end, epoch=epoch)


class SpreadReceiving:
    """One request that several nodes are asked for."""

    def __init__(self, spread: SpreadReceiver, request: ReceiveRequest, on_leased: OnLeased) -> None:
        self._spread = spread
        self._request = request
        self._on_leased = on_leased
        self._clock = spread.forwarding.clock
        self._end_s = self._clock.monotonic_s() + request.wait_ms / 1000
        self._asked: dict[int, Callable[[], None]] = {}
        """How to take back what is under way, by number."""
        self._number = 0
        self._waiting = 0
        """Answers that are to come, and pauses before a place is asked again."""
        self._failed: list[LeasedPlace] = []
        self._has_answer = False
        """A node has looked and found nothing."""
        self.is_over = False

    def start(self, by_node: dict[int | None, list[Spot]], turn: int) -> None:
        reachable = [(node_id, spots) for node_id, spots in by_node.items() if node_id is not None]
        nobodys = by_node.get(None, [])
        first = turn % max(1, len(reachable))
        parts = reachable[first:] + reachable[:first]
        if self._request.wait_ms > 0:
            self._ask_first(parts, nobodys)
        else:
            self._ask_in_turn(parts, nobodys)

    def _ask_in_turn(self, parts: list[tuple[int, list[Spot]]], nobodys: list[Spot]) -> None:
        """Without waiting."""
        if not parts:
            self._fail(nobodys, None)
            self._over()
            return
        node_id, spots = parts[0]

        def told(found: list[LeasedPlace]) -> None:
            if not self._take(found):
                self._ask_in_turn(parts[1:], nobodys)

        self._ask(node_id, spots, 0, told)

    def _ask_first(self, parts: list[tuple[int, list[Spot]]], nobodys: list[Spot]) -> None:
        """One of them without waiting, and then all."""
        if not parts:
            self._park(nobodys)
            return
        node_id, spots = parts[0]

        def told(found: list[LeasedPlace]) -> None:
            if not self._take(found):
                self._failed.clear()
                self._park([spot for _, each in parts for spot in each] + nobodys)

        self._ask(node_id, spots, 0, told)

    def _park(self, spots: list[Spot]) -> None:
        if self.is_over:
            return
        rest_ms = int((self._end_s - self._clock.monotonic_s()) * 1000)
        if rest_ms <= 0:
            self._over()
            return
        for node_id, some in self._spread.divide(spots).items():
            self._waiting += 1
            if node_id is None:
                self._fail(some, None)
                self._park_later(some)
            else:
                self._ask(node_id, some, rest_ms, partial(self._parked, some))

    def _parked(self, spots: list[Spot], found: list[LeasedPlace]) -> None:
        if self._take(found):
            return
        if any(each.error is not None and each.error.retriable for each in found):
            self._park_later(spots)
        else:
            self._waiting -= 1
            self._over()

    def _park_later(self, spots: list[Spot]) -> None:
        def again() -> None:
            self._waiting -= 1
            self._park(spots)

        self._clock.call_after(PARK_AGAIN_MS, again)

    def _ask(self, node_id: int, spots: list[Spot], wait_ms: int, told: Callable[[list[LeasedPlace]], None]) -> None:
        self._number += 1
        number = self._number
        request = self._request._replace(places=spots, wait_ms=wait_ms)

        def answered(reply: list[Taken] | GoQueueError) -> None:
            if isinstance(reply, GoQueueError):
                told_once([LeasedPlace(topic, partition, reply.kept()) for topic, partition in spots])
            else:
                told_once([each.place() for each in reply])

        def told_once(found: list[LeasedPlace]) -> None:
            self._asked.pop(number, None)
            if self.is_over:  # somebody else was first, or nobody waits any more
                self._spread.receiver.give_back([each for each in found if each.error is None], request.group_id)
            else:
                told(found)

        self._asked[number] = lambda: None
        if node_id == self._spread.forwarding.homes.me:
            parked = self._spread.receiver.receive_here(request, told_once)
        else:
            timeout_ms = wait_ms + ANSWER_MS_MAX
            parked = RECEIVE.ask(self._spread.forwarding, node_id, request, answered, timeout_ms)
        if parked is not None and number in self._asked:
            self._asked[number] = parked.cancel

    def _fail(self, spots: list[Spot], error: GoQueueError | None) -> None:
        for topic, partition in spots:
            failure = error or NotHere(f"{topic}/{partition} has no leader at the moment")
            self._failed.append(LeasedPlace(topic, partition, failure))

    def _take(self, found: list[LeasedPlace]) -> bool:
        """Whether that is all that is to be done."""
        if self.is_over:
            return True
        leased = [each for each in found if each.error is None and each.slices is not None and each.slices.runs]
        if leased:
            self._end(leased)
            return True
        failed = [each for each in found if each.error is not None]
        self._failed += failed
        self._has_answer = self._has_answer or not failed
        return False

    def _over(self) -> None:
        """Nothing was found. Why it could not be is told only if nobody has looked."""
        if not self.is_over and (self._waiting == 0 or self._clock.monotonic_s() >= self._end_s):
            self._end([] if self._has_answer else self._failed)

    def _end(self, found: list[LeasedPlace]) -> None:
        self.cancel()
        self._on_leased(found)

    def cancel(self) -> None:
        self.is_over = True
        asked, self._asked = self._asked, {}
        for take_back in asked.values():
            take_back()
