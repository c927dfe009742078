"""What a follower asks its leader for, and what it does with its copy when it is answered: the other half of the rules
of replication, beside `LeaderView`. No log, no network and no clock is touched here.
"""

from collections.abc import Callable
from typing import NamedTuple

from goqueue.machines.partitions.replication import BeginAnew, Diverged, Records, Unheard, Verdict


class OwnLog(NamedTuple):
    """Of the follower, at this moment."""

    start: int
    end: int
    acknowledged: int
    """Below it all is on the disk, or counts as if it were (`durability=os`)."""
    is_doubtful: bool = False
    is_damaged: bool = False
    """A batch in it cannot be read any more."""


class Asking(NamedTuple):
    """What a fetch says of the copy."""

    epoch: int
    offset: int
    last_epoch: int
    told_bound: int


class Answered(NamedTuple):
    """What the leader said, apart from the records themselves."""

    verdict: Verdict
    start: int = 0
    """Of the leader's log."""
    compacted_to: int = 0
    """Below it offsets may have gaps."""
    tombstones_to: int = 0
    """Below it tombstones were dropped."""
    is_whole: bool = False
    """The copy stands where a new member of the ISR must."""


class Take(NamedTuple):
    """Append what was sent. In this order: allow the gaps, append, raise the watermark, move the start, be whole."""

    high_watermark: int
    """Of the leader: one's own is not above one's own end."""
    gaps_to: int
    """0: no more gaps are allowed than before."""
    start: int
    """0: it stays."""
    becomes_whole: bool


class Truncate(NamedTuple):
    """Give up what the leader does not have, durably."""

    end: int


class Restart(NamedTuple):
    """Begin anew and empty, doubtful, durably."""

    start: int
    tombstones_to: int


class AskLater(NamedTuple):
    """The leader is not that of this epoch, or does not know this life: nothing was said of the copy."""


Todo = Take | Truncate | Restart | AskLater


class FollowerView:
    """One role of one follower. Made for one epoch and thrown away with it: an answer to an earlier one finds nobody.

    Invariant: a copy loses records only by a verdict of the leader of this epoch, or when it is damaged; and never
    because of a high watermark.
    """

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.told_bound = 0
        """Of tombstones, by the leader of this epoch when the copy began anew. Another leader may have dropped others:
        what it would have told is not known."""

    def fetch(self, own: OwnLog, last_epoch: int) -> Asking | None:
        """`last_epoch`: of the last batch in its own log, never anything that it was told. None: not all that it has is
        on its disk yet, and the leader would take it for that."""
        if own.acknowledged < own.end:
            return None
        return Asking(self.epoch, own.end, last_epoch, self.told_bound)

    def on_answer(self, answer: Answered, own: OwnLog, epoch_end: Callable[[int], tuple[int, int]]) -> Todo:
        """`epoch_end`: of its own log, see `EpochHistory.end_of`."""
        verdict = answer.verdict
        if isinstance(verdict, Records):
            if own.is_damaged:
                return Restart(0, 0)  # there is a leader that has no need of this copy; it says where, if later
            return Take(
                verdict.high_watermark,
                answer.compacted_to if own.end < answer.compacted_to else 0,
                answer.start if answer.start > own.start else 0,
                answer.is_whole and own.is_doubtful,
            )
        if isinstance(verdict, Diverged):
            return Truncate(self.cut(verdict, own.start, epoch_end(verdict.epoch)[1]))
        if isinstance(verdict, BeginAnew):
            self.told_bound = answer.tombstones_to
            return Restart(verdict.start, answer.tombstones_to)
        assert isinstance(verdict, Unheard)
        return AskLater()

    @staticmethod
    def cut(verdict: Diverged, own_start: int, own_epoch_end: int) -> int:
        """Where the two logs parted. The high watermark has no say in it. `own_epoch_end` is below 0 if there is no
        such epoch here."""
        end = min(verdict.end, own_epoch_end) if own_epoch_end >= 0 else verdict.end
        return max(own_start, end)


# -- doubt


def is_made_doubtful(epoch: int) -> bool:
    """A copy of a partition that was led before is made: the ISR may name this node for one that it has lost."""
    return epoch > 0


def doubt(end: int, saved_watermark: int, *, is_unsynced: bool, machine_went_down: bool) -> str:
    """Why a copy that was opened may lack what the ISR says that it holds; empty: it does not. `is_unsynced`: its topic
    acknowledges before the sync."""
    if end < saved_watermark:
        return f"it ends at {end}, and {saved_watermark} was its high watermark"
    if machine_went_down and is_unsynced:
        return "it is not synced before it is acknowledged, and its machine went down"
    return ""
