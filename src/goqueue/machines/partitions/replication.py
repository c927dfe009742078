"""What a leader may believe of its followers, and how far its high watermark may move: the rules of replication, as
functions of what was heard and when. No log, no network and no clock is touched here.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from goqueue.records.batch import NO_EPOCH

FRESH_MS = 1000
"""A follower that fetched under the leader's epoch so recently has not elected another one."""


class Noted(NamedTuple):
    """What a follower's last fetch said of it."""

    offset: int
    """Everything below it is synced there."""
    sent_ms: int
    """Not before this, on the leader's clock."""
    at_end_ms: int
    """When it last had all that the leader had."""


class Ends(NamedTuple):
    """Of the leader's own log, at this moment."""

    start: int
    end: int
    tombstones_to: int = 0
    """In a compacted log: below it tombstones were dropped."""


class Records(NamedTuple):
    """The follower's log is a prefix of the leader's: it gets what comes next."""

    offset: int
    high_watermark: int


class Diverged(NamedTuple):
    """The follower has what the leader has not: it truncates to where the two logs parted, and asks again."""

    epoch: int
    end: int


class BeginAnew(NamedTuple):
    """Nothing that the follower has is of use: its log restarts, empty, at this offset."""

    start: int


class Unheard(NamedTuple):
    """The fetch is of another epoch or of another life of the follower: it says nothing."""


Verdict = Records | Diverged | BeginAnew | Unheard


class LeaderView:
    """One reign of one leader. Made for one epoch and thrown away with it.

    Invariant: the high watermark never falls, and never passes what a member of the ISR has not synced.
    """

    def __init__(self, me: int, epoch: int, isr: Iterable[int], minimum: int, high_watermark: int) -> None:
        self.me = me
        self.epoch = epoch
        self.isr = frozenset(isr)
        """As the store has confirmed it."""
        self.pending_isr: frozenset[int] = frozenset()
        """As it was proposed and may be already: it holds the watermark back, and counts for nothing else."""
        self.minimum = minimum
        """Of in-sync replicas, for the watermark to move."""
        self.high_watermark = high_watermark
        self._noted: dict[int, Noted] = {}
        self._is_alone = False
        """All that counts is its own log, as on one node."""
        self.set_isr(isr)

    def set_isr(self, isr: Iterable[int], pending: Iterable[int] = ()) -> None:
        self.isr, self.pending_isr = frozenset(isr), frozenset(pending)
        self._is_alone = self.isr | self.pending_isr == {self.me} and self.minimum <= 1

    def set_minimum(self, minimum: int) -> None:
        self.minimum = minimum
        self.set_isr(self.isr, self.pending_isr)

    def noted(self, follower: int) -> Noted | None:
        return self._noted.get(follower)

    def advance(self, own_end: int) -> int:
        """`own_end`: what the leader's own log acknowledges by itself. Returns the high watermark."""
        if self._is_alone:
            if own_end > self.high_watermark:
                self.high_watermark = own_end
            return self.high_watermark
        if len(self.isr) < self.minimum:
            return self.high_watermark
        lowest = own_end
        for member in self.isr | self.pending_isr:
            if member == self.me:
                continue
            heard = self._noted.get(member)
            if heard is None:
                return self.high_watermark
            lowest = min(lowest, heard.offset)
        self.high_watermark = max(self.high_watermark, lowest)
        return self.high_watermark

    def on_fetch(  # noqa: PLR0913  a fetch says so much
        self,
        follower: int,
        epoch: int,
        offset: int,
        last_epoch: int,
        told_bound: int,
        sent_ms: int,
        now_ms: int,
        ends: Ends,
        own_end: int,
        epoch_end: Callable[[int], tuple[int, int]],
    ) -> Verdict:
        """`offset`: the follower's synced end. `last_epoch`: of the last batch in its log. `told_bound`: of tombstones,
        as it was told last. `epoch_end`: of the leader's log, see `EpochHistory.end_of`."""
        if epoch != self.epoch:
            return Unheard()
        if last_epoch == NO_EPOCH:  # an empty log has nothing to compare
            if offset > ends.end:
                return BeginAnew(ends.start)
        else:
            known_epoch, end = epoch_end(last_epoch)
            if known_epoch != last_epoch or end < offset:
                return Diverged(known_epoch, min(end, offset))
        if offset < ends.start or max(offset, told_bound) < ends.tombstones_to:
            return BeginAnew(ends.start)
        before = self._noted.get(follower)
        at_end_ms = now_ms if offset >= ends.end else (before.at_end_ms if before is not None else 0)
        self._noted[follower] = Noted(offset, sent_ms, at_end_ms)
        return Records(offset, self.advance(own_end))

    def is_fresh(self, now_ms: int) -> bool:
        """No other leader can have been elected without a member that has not fetched since."""
        others = (self.isr | self.pending_isr) - {self.me}
        heard = (self._noted.get(member) for member in others)
        return all(one is not None and now_ms - one.sent_ms <= FRESH_MS for one in heard)

    def may_join(self, follower: int, reign_start: int) -> bool:
        """Whether it holds all that was ever acknowledged, and so may be proposed for the ISR."""
        heard = self._noted.get(follower)
        return heard is not None and heard.offset >= max(self.high_watermark, reign_start)
