"""One place: the delivery of one partition to one group, in a window that follows the log and one for each replay."""

from collections.abc import Iterator

from goqueue.machines.deliveries.blocks import Range, merged, without
from goqueue.machines.deliveries.commands import DEFAULT_POLICY, OWN_WINDOW, DeadLetter, Measure, Place
from goqueue.machines.deliveries.facts import DeadStored, Progress, ReplayStored, progress_record
from goqueue.machines.deliveries.look import unsettled
from goqueue.machines.deliveries.window import (
    ATTEMPTS_MAX,
    HELD,
    LEASED,
    READY,
    WAITING,
    Window,
)
from goqueue.model.lanes import LANES
from goqueue.records.plain import NumberRecord

SECOND_MS = 1000
BURSTS_PER_SECOND = 10
DEAD_MAX = 10_000
"""Dead letters that wait to be written. While there are more, nothing is leased and nothing expires."""


class Rate:
    """A bucket that fills with permissions to lease, a tenth of a second's worth at most."""

    def __init__(self, per_second: int) -> None:
        self.per_second = per_second
        self._burst = max(1.0, per_second / BURSTS_PER_SECOND)
        self._filled = self._burst
        self._filled_ms = 0

    def _at(self, now_ms: int) -> float:
        passed_ms = max(0, now_ms - self._filled_ms)
        return min(self._burst, self._filled + passed_ms * self.per_second / SECOND_MS)

    def shift(self, by_ms: int) -> None:
        self._filled_ms += by_ms

    def allows(self, now_ms: int) -> int:
        return int(self._at(now_ms) + 1e-6)

    def take(self, count: int, now_ms: int) -> int:
        """When the next one is allowed."""
        self._filled = self._at(now_ms) - count
        self._filled_ms = now_ms
        missing = max(0.0, 1 - self._filled)
        return now_ms + -int(-missing * SECOND_MS // self.per_second)


class Delivery:
    """Invariant: an offset is unsettled in one window at most; replays choose only what is settled everywhere."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.topic_id: bytes | None = None
        """None: only while a ledger is read, which may tell of blocks before it tells of progress."""
        self.policy = DEFAULT_POLICY
        self.is_open = False
        self.own = Window(OWN_WINDOW, 0, orders_by_key=False)
        self.replays: dict[int, Window] = {}
        self.replay_facts: dict[int, ReplayStored] = {}
        self.rates: dict[int, Rate] = {}
        self.dead: dict[int, DeadStored] = {}
        """By offset, in the order in which they died."""
        self.unacked: dict[str, int] = {}
        """How many records each consumer holds here."""
        self.arrived = [0] * LANES
        self.served = [0] * LANES
        self.turn = 0
        self.next_window = OWN_WINDOW + 1
        self._progress_record: NumberRecord | None = None

    @property
    def attempts_max(self) -> int:
        """Above what is counted if there is no limit."""
        return min(self.policy.attempts_max, ATTEMPTS_MAX) or ATTEMPTS_MAX + 2

    def progress_record(self) -> NumberRecord:
        """Of how far its own window is settled: put the number in."""
        if self._progress_record is None:
            assert self.topic_id is not None
            self._progress_record = progress_record(Progress(self.place, OWN_WINDOW, self.topic_id, 0))
        return self._progress_record

    # State

    def set_topic(self, topic_id: bytes) -> None:
        self.topic_id, self._progress_record = topic_id, None

    def reorder(self, next_lease: int) -> None:
        """What was observed has to be observed again, with keys or without; leases are forgotten."""
        for window in self.windows():
            window.clear(window.start, self.policy.orders_by_key)
            window.forgot_below = next_lease
        self.unacked.clear()

    def reset(self, start: int) -> None:
        self.own.clear(start, self.policy.orders_by_key)
        self.own.takes_old, self.own.forgot_below = False, 0
        self.unacked.clear()

    def add_replay(self, fact: ReplayStored) -> None:
        window = Window(fact.window, fact.chosen[0][0], self.policy.orders_by_key, fact.chosen)
        self.replays[fact.window] = window
        self.replay_facts[fact.window] = fact
        self.next_window = max(self.next_window, fact.window + 1)
        if fact.records_per_second > 0:
            self.rates[fact.window] = Rate(fact.records_per_second)

    def drop_replay(self, number: int) -> None:
        self.replays.pop(number, None)
        self.replay_facts.pop(number, None)
        self.rates.pop(number, None)

    def shift(self, by_ms: int) -> None:
        """The clock was set."""
        for window in self.windows():
            window.unserved_since_ms = [since_ms + by_ms for since_ms in window.unserved_since_ms]
        for rate in self.rates.values():
            rate.shift(by_ms)

    # Questions

    def window(self, number: int) -> Window | None:
        return self.own if number == OWN_WINDOW else self.replays.get(number)

    def windows(self) -> Iterator[Window]:
        yield self.own
        yield from self.replays.values()

    def allowance(self, window: Window, now_ms: int, count: int) -> int:
        rate = self.rates.get(window.number)
        return count if rate is None else min(count, rate.allows(now_ms))

    def parts(self, first: int, last: int) -> list[tuple[Window, int, int]]:
        """Whose are these offsets? Of the replay that has them unsettled, else of the window that follows the log."""
        if not self.replays:
            return [(self.own, first, last)]
        found: list[tuple[Window, int, int]] = []
        for window in self.replays.values():
            found += ((window, *each) for each in unsettled(window, first, last))
        taken: list[Range] = merged((low, high) for _, low, high in found)
        found += ((self.own, *each) for each in without([(first, last)], taken))
        return sorted(found, key=lambda part: part[1])

    def letters(self) -> list[DeadLetter]:
        return [fact.letter for fact in self.dead.values()]

    def measure(self) -> Measure:
        own = self.own
        counts = own.counts
        by_state = [sum(counts[state : state + LANES]) for state in (WAITING, HELD)]
        return Measure(
            start_offset=own.start,
            end_offset=own.end,
            ready=_five(counts, READY),
            leased=_five(counts, LEASED),
            waiting=by_state[0],
            held=by_state[1],
            dead=len(self.dead),
            replaying=sum(sum(window.counts[:LANES]) for window in self.replays.values()),
            arrived=_five(self.arrived, 0),
            served=_five(self.served, 0),
            oldest_offset=own.start,
            senders=0 if own.fair is None else own.fair.active,
        )


def _five(counts: list[int], state: int) -> tuple[int, int, int, int, int]:
    critical, high, normal, low, background = counts[state : state + LANES]
    return critical, high, normal, low, background
