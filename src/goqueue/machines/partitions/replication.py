"""What a leader may believe of its followers, and how far its high watermark may move: the rules of replication, as
functions of what was heard and when. No log, no network and no clock is touched here.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from goqueue.records.batch import NO_EPOCH

FRESH_MS = 1000
"""A follower that fetched under the leader's epoch so recently has not elected another one."""


LAG_MS_MAX = 10_000
"""A member of the ISR that was not at the end for so long is taken out."""


class Noted(NamedTuple):
    """What a follower's last fetch said of it."""

    offset: int
    """Everything below it is synced there."""
    sent_ms: int
    """Not before this, on the leader's clock."""
    at_end_ms: int
    """When it last had all that the leader had."""
    incarnation: int = 0
    """The life in which it fetched."""
    at_ms: int = 0
    """When this was noted."""
    end: int = 0
    """Of the leader's log, then."""


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


class Proposal(NamedTuple):
    """Another ISR, which the leader asks the store for."""

    isr: tuple[int, ...]
    joining: Mapping[int, int]
    """Who was not in it, with the life in which it fetched: the store compares it."""


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
        """Of in-sync replicas, for the watermark to move. The ISR is not made smaller."""
        self.high_watermark = high_watermark
        self.revision = 0
        """Of the partition's key, as it was read last."""
        self.is_unsure = False
        """The answer to a proposal was lost: it may still arrive and be done, until the revision has moved."""
        self.fallen: dict[int, int] = {}
        """Members of the ISR that lack what was acknowledged, with the offset that they asked for: they have lost
        their disk, or a part of it."""
        self._noted: dict[int, Noted] = {}
        self._since_ms: int | None = None
        self._is_alone = False
        self.set_isr(isr)

    # -- the ISR

    def set_isr(self, isr: Iterable[int], pending: Iterable[int] = ()) -> None:
        self.isr, self.pending_isr = frozenset(isr), frozenset(pending)
        self._is_alone = self.isr | self.pending_isr == {self.me} and self.minimum <= 1

    def set_minimum(self, minimum: int) -> None:
        self.minimum = minimum
        self.set_isr(self.isr, self.pending_isr)

    def on_placement(self, isr: Iterable[int], revision: int) -> None:
        """The partition's key was read, or a change of it was told. Only a revision that has moved says anything: a
        proposal whose answer was lost may still arrive while it has not."""
        if revision > self.revision:
            self.revision = revision
            self.is_unsure = False
            self.set_isr(isr)

    def propose(self, isr: Iterable[int]) -> None:
        """Before the store is asked: from then on it may be so."""
        self.set_isr(self.isr, self.pending_isr | frozenset(isr))

    def on_refused(self) -> None:
        """The store has answered that it did nothing: it will not do it later either."""
        if not self.is_unsure:
            self.set_isr(self.isr)

    def on_unsure(self) -> None:
        """No answer. Have the key written again, so that its revision moves; until then all stays as it is."""
        self.is_unsure = True

    def proposal(
        self,
        now_ms: int,
        nodes: Mapping[int, int],
        replicas: Iterable[int],
        reign_start: int,
        companions: "Iterable[tuple[LeaderView, int]]" = (),
        lag_ms_max: int = LAG_MS_MAX,
    ) -> Proposal | None:
        """Who should be in the ISR instead. `nodes`: those that are alive, and in which life. `companions`: see
        `may_join`. None: it is as it should be, or cannot be changed, or a proposal is under way."""
        if self._since_ms is None:
            self._since_ms = now_ms
        if self.pending_isr or self.is_unsure:
            return None
        companions = list(companions)
        joining = {
            node_id: nodes[node_id]
            for node_id in sorted(replicas)
            if node_id not in self.isr
            and node_id in nodes
            and self.may_join(node_id, reign_start, companions, nodes[node_id])
        }
        members = self.isr | joining.keys()
        leaving = self._leaving(now_ms, nodes, lag_ms_max)
        members -= frozenset(leaving[: max(0, len(members) - max(1, self.minimum))])
        return Proposal(tuple(sorted(members)), joining) if members != self.isr else None

    def _leaving(self, now_ms: int, nodes: Mapping[int, int], lag_ms_max: int) -> list[int]:
        """Who should go, the worst first."""
        assert self._since_ms is not None
        found: list[tuple[int, int, int]] = []
        for member in sorted(self.isr - {self.me}):
            noted = self._noted.get(member)
            at_end_ms = max(noted.at_end_ms, self._since_ms) if noted is not None else self._since_ms
            offset = noted.offset if noted is not None else -1
            if member not in nodes:
                found.append((0, offset, member))
            elif member in self.fallen:
                found.append((1, offset, member))
            elif now_ms - at_end_ms > lag_ms_max:
                found.append((2, offset, member))
        return [member for _, _, member in sorted(found)]

    def may_join(
        self,
        follower: int,
        reign_start: int,
        companions: "Iterable[tuple[LeaderView, int]]" = (),
        incarnation: int | None = None,
    ) -> bool:
        """Whether it holds all that was ever acknowledged, and so may be proposed for the ISR, or is whole if it was
        doubtful. `companions`: the ledgers of the partition, each with the start of the reign in it; it must hold them
        too. `incarnation`: the life that it must have fetched in."""
        heard = self._noted.get(follower)
        if heard is None or heard.offset < max(self.high_watermark, reign_start):
            return False
        if incarnation is not None and heard.incarnation != incarnation:
            return False
        return all(view.may_join(follower, start, (), incarnation) for view, start in companions)

    # -- the high watermark

    @property
    def is_alone(self) -> bool:
        """All that counts is its own log, as on one node."""
        return self._is_alone

    def forget(self, follower: int) -> None:
        """Its copy is not there any more: what it said of it says nothing of one that is made later."""
        self._noted.pop(follower, None)
        self.fallen.pop(follower, None)

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
        incarnation: int = 0,
        known_incarnation: int | None = None,
    ) -> Verdict:
        """`offset`: the follower's synced end. `last_epoch`: of the last batch in its log. `told_bound`: of tombstones,
        as it was told last. `epoch_end`: of the leader's log, see `EpochHistory.end_of`. `incarnation`: the life in
        which it fetches; `known_incarnation`: the one that the image has, None where nobody compares."""
        if epoch != self.epoch or (known_incarnation is not None and incarnation != known_incarnation):
            return Unheard()
        verdict = self._parted(offset, last_epoch, told_bound, ends, epoch_end)
        if follower in self.isr and self._stands_at(verdict, offset) < self.high_watermark:
            self.fallen[follower] = offset
        else:
            self.fallen.pop(follower, None)
        if verdict is not None:
            self._noted.pop(follower, None)  # what it said before is not true any more
            return verdict
        before = self._noted.get(follower)
        at_end_ms = before.at_end_ms if before is not None else 0
        if offset >= ends.end:
            at_end_ms = now_ms
        elif before is not None and offset >= before.end:  # where writes never pause, nobody is ever at the end
            at_end_ms = max(at_end_ms, before.at_ms)
        self._noted[follower] = Noted(offset, sent_ms, at_end_ms, incarnation, now_ms, ends.end)
        return Records(offset, self.advance(own_end))

    @staticmethod
    def _parted(
        offset: int, last_epoch: int, told_bound: int, ends: Ends, epoch_end: Callable[[int], tuple[int, int]]
    ) -> Diverged | BeginAnew | None:
        """None: the follower's log is a prefix of this one."""
        if last_epoch == NO_EPOCH:  # an empty log has nothing to compare
            if offset > ends.end:
                return BeginAnew(ends.start)
        else:
            known_epoch, end = epoch_end(last_epoch)
            if known_epoch != last_epoch or end < offset:
                return Diverged(known_epoch, min(end, offset))
        if offset < ends.start or max(offset, told_bound) < ends.tombstones_to:
            return BeginAnew(ends.start)
        return None

    @staticmethod
    def _stands_at(verdict: Diverged | BeginAnew | None, offset: int) -> int:
        if verdict is None:
            return offset
        return verdict.end if isinstance(verdict, Diverged) else -1

    def is_fresh(self, now_ms: int) -> bool:
        """No other leader can have been elected without a member that has not fetched since."""
        others = (self.isr | self.pending_isr) - {self.me}
        heard = (self._noted.get(member) for member in others)
        return all(one is not None and now_ms - one.sent_ms <= FRESH_MS for one in heard)
