"""A decision about one window before it is facts: what shall be settled, retried or dead, and what has to be stored so
that a restart knows.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from goqueue.machines.deliveries.blocks import (
    BLOCK,
    FOREVER,
    Range,
    Retry,
    bits_of,
    blocks_of,
    clipped,
    merged,
    pack_bits,
    split_retry,
    unpack_bits,
    with_retry,
    without_retries,
)
from goqueue.machines.deliveries.commands import DeadLetter
from goqueue.machines.deliveries.facts import (
    EXPIRED,
    REMOVED,
    RETURNED,
    BlockForgotten,
    BlockStored,
    Causes,
    Change,
    Changed,
    DeadForgotten,
    DeadStored,
    Progress,
)
from goqueue.machines.deliveries.look import unsettled
from goqueue.machines.deliveries.pick import History
from goqueue.machines.deliveries.place import Delivery
from goqueue.machines.deliveries.window import DEAD, READY, SETTLED, UNDONE, WAITING, Window
from goqueue.machines.machine import Fact

ERROR_CHARS_MAX = 1000
REMOVED_RUNS_MAX = 1000
"""Of what retention took unsettled, told one by one."""


class Draft:
    __slots__ = (
        "_changes",
        "_counted",
        "_dead",
        "_floor",
        "_letters_written",
        "_retries",
        "_settled",
        "delivery",
        "now_ms",
        "window",
    )

    def __init__(self, delivery: Delivery, window: Window, now_ms: int) -> None:
        self.delivery = delivery
        self.window = window
        self.now_ms = now_ms
        self._changes: list[Change] = []
        self._settled: list[Range] = []
        self._retries: list[Retry] = []
        self._dead: list[DeadLetter] = []
        self._letters_written: list[int] = []
        self._floor = window.start
        self._counted: list[tuple[str, int]] = []

    def count(self, what: str, first: int, last: int) -> None:
        """Of `Tally`."""
        self._counted.append((what, last + 1 - first))

    # What shall be

    def settle(self, first: int, last: int, lease: int = 0, causes: Causes = (), detail: str = "") -> None:
        self._settled.append((first, last))
        self._changes.append(Change(first, last, SETTLED, lease, 0, 0, causes, detail))

    def settled(self, ranges: Sequence[Range]) -> None:
        """In rising order; the window knows already."""
        self._settled += ranges

    def remove_below(self, offset: int) -> None:
        """They are gone, observed or not. Dead letters among them are left to whoever fails to read them."""
        self._floor = offset
        for first, last in unsettled(self.window, self.window.start, offset - 1)[:REMOVED_RUNS_MAX]:
            self._changes.append(Change(first, last, SETTLED, causes=REMOVED))
        self.settle(self.window.start, offset - 1)

    def retry(self, history: History, visible_at_ms: int, lease: int, causes: Causes, detail: str) -> None:
        """Its delivery ended without success."""
        self.count("retried", history.first, history.last)
        is_now = visible_at_ms <= self.now_ms
        self._retries.append(Retry(*history, 0 if is_now else visible_at_ms))
        state = READY if is_now else WAITING
        first, last, attempts, _ = history
        self._changes.append(Change(first, last, state, lease, visible_at_ms, attempts, causes, detail))

    def make_ready(self, first: int, last: int) -> None:
        """Its delay is over: nothing that a restart would not see for itself."""
        self._changes.append(Change(first, last, READY))

    def undo(self, first: int, last: int, lease: int) -> None:
        self._changes.append(Change(first, last, UNDONE, lease, causes=RETURNED))

    def kill(self, history: History, reason: str, error: str, lease: int, causes: Causes) -> None:
        first, last, attempts, first_ms = history
        error = error[:ERROR_CHARS_MAX]
        self.count("died", first, last)
        self._dead += (
            DeadLetter(offset, reason, error, attempts, first_ms, self.now_ms) for offset in range(first, last + 1)
        )
        self._changes.append(Change(first, last, DEAD, lease, 0, 0, causes, error))

    def expire(self, history: History, lease: int = 0, causes: Causes = ()) -> None:
        """`causes`: what happened to it just when its time was over too."""
        if self.delivery.policy.keeps_expired:
            self.kill(history, "expired", "", lease, causes + EXPIRED)
        else:
            self.settle(history.first, history.last, lease, causes + EXPIRED)

    def letter_written(self, offset: int) -> None:
        """Its dead letter is written."""
        self._letters_written.append(offset)
        self.settle(offset, offset)

    # What has to be stored

    def facts(self) -> list[Fact]:
        if not self._changes:
            return []
        place, number = self.delivery.place, self.window.number
        facts: list[Fact] = [Changed(place, number, tuple(self._changes), self.now_ms, tuple(self._counted))]
        if self._settled or self._retries:
            facts += self.stored_facts()
        if self._dead:
            facts += (DeadStored(place, number, letter) for letter in self._dead)
        if self._letters_written:
            facts += (DeadForgotten(place, offset) for offset in dict.fromkeys(self._letters_written))
        return facts

    def stored_facts(self) -> list[Fact]:
        """Of what is settled or tried again: the blocks that change, and how far all is settled."""
        facts: list[Fact] = []
        start = self._new_start()
        if self._retries or self._settled[-1][1] >= start:
            facts += self._blocks(start)
        if start != self.window.stored_start:
            if self.window.stored:
                facts += self._forgotten_blocks(start)
            topic_id = self.delivery.topic_id
            assert topic_id is not None
            facts.append(Progress(self.delivery.place, self.window.number, topic_id, start))
        return facts

    def _new_start(self) -> int:
        """Past all that is settled or will be, as far as the log was observed."""
        window, settled = self.window, self._settled
        if len(settled) > 1:
            settled = self._settled = merged(settled)
        start, end = window.start, window.end
        while start < end:
            start = window.done_until(start)
            position = bisect_right(settled, (start, FOREVER)) - 1
            if position < 0 or settled[position][1] < start:
                break
            start = min(settled[position][1] + 1, end)
        return max(start, self._floor)

    def _blocks(self, start: int) -> list[Fact]:
        settled: dict[int, list[Range]] = {}
        for first, last in clipped(self._settled, start, FOREVER):
            for number in blocks_of(first, last):
                settled.setdefault(number, []).append((first, last))
        retries: dict[int, list[Retry]] = {}
        for retry in self._retries:
            for part in split_retry(retry):
                retries.setdefault(part.first // BLOCK, []).append(part)
        numbers = dict.fromkeys((*settled, *retries)) if retries else settled
        return [self._block(number, settled.get(number, ()), retries.get(number, ())) for number in numbers]

    def _block(self, number: int, settled: Iterable[Range], retries: Iterable[Retry]) -> Fact:
        old = self.window.stored.get(number)
        bits, packed = (0, b"") if old is None else (unpack_bits(old.settled), old.retries)
        for first, last in settled:
            bits |= bits_of(number, first, last)
            if packed:
                packed = without_retries(number, packed, first, last)
        for retry in retries:
            packed = with_retry(number, packed, retry)
        return BlockStored(self.delivery.place, self.window.number, number, pack_bits(bits), packed)

    def _forgotten_blocks(self, start: int) -> Iterable[Fact]:
        stored = self.window.stored
        passed = range(self.window.stored_start // BLOCK, start // BLOCK)
        if len(passed) > len(stored):
            numbers = [number for number in stored if number < start // BLOCK]
        else:
            numbers = [number for number in passed if number in stored]
        return [BlockForgotten(self.delivery.place, self.window.number, number) for number in numbers]
