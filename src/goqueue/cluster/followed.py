"""One copy that follows: its leader's answers are brought into its log, as `FollowerView` decides. It holds for one
role: an answer to an earlier one finds nobody.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from goqueue.cluster.copies import CopyId
from goqueue.machines.partitions.following import Answered, AskLater, FollowerView, OwnLog, Restart, Take, Truncate
from goqueue.machines.partitions.replication import BeginAnew, Diverged, Records, Unheard, Verdict
from goqueue.model.codes import Code
from goqueue.model.errors import CorruptBatch, GoQueueError, LogClosed, LogPoisoned, StaleEpoch
from goqueue.records.batch import split
from goqueue.replica.replica import Replica
from goqueue.replica.roles import Following
from goqueue.telemetry.logs import get_logger
from goqueue.wire.kafka.messages.fetch import FetchedPartition, FetchPartition

events = get_logger("replication")

PARTITION_BYTES_MAX = 1024 * 1024
SOON_MS = (10, 200)
LATER_MS = 1000
"""When a copy asks again that was refused: the image may lag behind the leader's, a disk may get room."""
COMPLAIN_AFTER = 10
"""Refusals in a row, before it is told of."""


class Link(Protocol):
    """Who asks for a copy, and is told when it is to be asked for again."""

    def name(self, followed: "Followed") -> None:
        """It has all that it was sent on its disk: ask for what comes next."""

    def name_later(self, followed: "Followed", delay_ms: int) -> None: ...

    def remove(self, copy: CopyId) -> None:
        """From now on no fetch speaks for it."""

    def adopt(self, replica: Replica) -> None:
        """A companion that is to be copied too."""


class CompanionMaker(Protocol):
    def make_companions(self, host: Replica, kinds: int) -> Sequence[Replica]:
        """Those of the kinds that there are now."""


class Taken(NamedTuple):
    """What an answer brought."""

    size: int
    is_full: bool
    """There was more than it had room for."""


NOTHING = Taken(0, is_full=False)


class Followed:
    def __init__(self, copy: CopyId, replica: Replica, role: Following, makes: CompanionMaker, link: Link) -> None:
        self.copy = copy
        self.replica = replica
        self.role = role
        self.link = link
        self.view = FollowerView(role.epoch)
        self._makes = makes
        self._companions = 0
        self._failures = 0
        self.full_answers = 0
        """In a row: so far behind it is."""
        role.on_synced = self.on_synced

    @property
    def is_current(self) -> bool:
        return self.replica.role is self.role and self.replica.log.failure is None

    @property
    def is_synced(self) -> bool:
        log = self.replica.log
        return log.acknowledged_offset >= log.end_offset

    @property
    def own_log(self) -> OwnLog:
        replica, log = self.replica, self.replica.log
        return OwnLog(
            log.start_offset, log.end_offset, log.acknowledged_offset, replica.is_doubtful, bool(log.damaged_batches)
        )

    def request(self) -> FetchPartition | None:
        """Only what is in its own log is told. None: not all of it is synced."""
        replica = self.replica
        asking = self.view.fetch(self.own_log, replica.last_epoch)
        if asking is None:
            return None
        return FetchPartition(
            self.copy.partition,
            asking.epoch,
            asking.offset,
            asking.last_epoch,
            replica.start_offset,
            PARTITION_BYTES_MAX,
            high_watermark=replica.high_watermark,
            gq_tombstones_told=asking.told_bound,
        )

    def on_synced(self) -> None:
        if isinstance(self.replica.log.failure, LogClosed):
            self.link.remove(self.copy)  # deleted, or another node's by now
        elif self.is_current and self.is_synced:
            self.link.name(self)

    def take(self, answer: FetchedPartition, now_ms: int) -> Taken:
        """What its leader says. Nothing that is wrong with it stops the others."""
        if not self.is_current:
            return NOTHING
        try:
            taken = self._take(answer, now_ms)
        except (CorruptBatch, StaleEpoch) as error:
            self._fail("what the leader sent does not fit", str(error), LATER_MS)
        except LogPoisoned:
            pass  # it was told of, and nothing can be copied to it
        except GoQueueError as error:
            self._fail("a copy cannot be appended to", str(error), LATER_MS)
        except Exception as fault:  # noqa: BLE001  a fault of ours with one copy must not end the copying of all others
            events.error("an answer for a copy was not taken in", copy=self.replica.name, exc_info=fault)
            self.link.name_later(self, LATER_MS)
        else:
            return taken
        return NOTHING

    def _take(self, answer: FetchedPartition, now_ms: int) -> Taken:
        replica = self.replica
        told = Answered(
            _verdict(answer, replica.end_offset),
            answer.log_start_offset,
            answer.gq_compacted_to,
            answer.gq_tombstones_gone_to,
            answer.gq_whole,
        )
        todo = self.view.on_answer(told, self.own_log, replica.log.epoch_end)
        match todo:
            case Take():
                self._failures = 0
                return self._append(answer, todo, now_ms)
            case Truncate():
                self._failures = 0
                events.warning("copy truncated", copy=replica.name, end=replica.end_offset, to=todo.end)
                replica.truncate(todo.end)
                self.link.name(self)
            case Restart():
                damaged = replica.log.damaged_batches
                events.warning("copy begins anew", copy=replica.name, start=todo.start, damaged_batches=damaged)
                replica.restart(todo.start, todo.tombstones_to)
                replica.log.damaged_batches = 0
                self.link.name(self)
            case AskLater():
                self._refused(Code(answer.error_code))
        return NOTHING

    def _append(self, answer: FetchedPartition, todo: Take, now_ms: int) -> Taken:
        replica = self.replica
        size = 0
        if answer.records:
            if todo.gaps_to:
                replica.learn_gaps(todo.gaps_to)
            batches = list(split(memoryview(answer.records)))  # type: ignore[arg-type]  # decoded it is one
            size = len(answer.records)  # type: ignore[arg-type]  # likewise
            replica.append_copied(batches, todo.high_watermark, now_ms)
        else:
            replica.learn_watermark(todo.high_watermark)
        if todo.start:
            replica.learn_start(todo.start)
        if todo.becomes_whole:
            replica.learn_whole()
        self._learn_companions(answer.gq_companions)
        if (size or todo.start) and self.is_synced:
            self.link.name(self)  # of the start, too: somebody may wait for it
        return Taken(size, is_full=size >= PARTITION_BYTES_MAX // 2)

    def _learn_companions(self, kinds: int) -> None:
        if kinds != self._companions:
            made = self._makes.make_companions(self.replica, kinds)
            if len(made) == kinds.bit_count():
                self._companions = kinds
            else:
                self.link.name_later(self, LATER_MS)
            for companion in made:
                self.link.adopt(companion)

    def _refused(self, code: Code) -> None:
        first_ms, last_ms = SOON_MS
        delay_ms = min(first_ms << min(self._failures, 10), last_ms)
        self._fail("the leader does not answer for a copy", code.name, delay_ms)

    def _fail(self, what: str, why: str, delay_ms: int) -> None:
        self._failures += 1
        if self._failures % COMPLAIN_AFTER == 0:
            events.warning(what, copy=self.replica.name, reason=why, times=self._failures)
        self.link.name_later(self, delay_ms)


def _verdict(answer: FetchedPartition, asked_offset: int) -> Verdict:
    """As it was put on the wire. All that the copy has was asked with."""
    if answer.error_code == Code.OFFSET_OUT_OF_RANGE:
        return BeginAnew(answer.log_start_offset)
    if answer.error_code:
        return Unheard()
    if answer.diverging_epoch is not None:
        return Diverged(answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset)
    return Records(asked_offset, answer.high_watermark)
