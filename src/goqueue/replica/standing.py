"""What one copy of a partition is at the moment: leader or follower of an epoch, how far its high watermark is, and who
waits for that.

The high watermark moves by the rule of the role alone: with one copy it is what its log acknowledges, with more what
all in-sync copies hold.
"""

from collections.abc import Callable, Iterable, Iterator

from goqueue.machines.partitions.replication import Ends, Records, Unheard, Verdict
from goqueue.model.errors import GoQueueError, StaleEpoch
from goqueue.model.refusal import NotLeader
from goqueue.model.topics import TopicOptions
from goqueue.records.batch import NO_EPOCH
from goqueue.replica.persisted import Persisted
from goqueue.replica.producer_snapshots import ProducerSnapshots
from goqueue.replica.reads import LogReads
from goqueue.replica.roles import Fetched, Following, Leading, Reign, Role
from goqueue.replica.waiting import Waiters
from goqueue.storage.log import Log
from goqueue.storage.options import LogOptions
from goqueue.telemetry.calls import call_each
from goqueue.telemetry.logs import get_logger

events = get_logger("replica")

NOBODY = -1

Defer = Callable[[Callable[[], None]], object]
"""Run a call soon, once, in this thread: many appends of one moment wake a reader once."""


class Standing(LogReads):
    """Belongs to one thread, like its log.

    Invariant: the high watermark is not above the end of the log, and falls only with a truncation.
    """

    def __init__(self, log: Log, name: str, options: TopicOptions, defer: Defer, high_watermark: int) -> None:
        super().__init__(log, name, options)
        self.role: Role = Following(NO_EPOCH, NOBODY)
        self.leader_epoch = NO_EPOCH
        self.high_watermark = min(max(high_watermark, log.start_offset), log.end_offset)
        """Everything below it is on every in-sync copy and may be read and acknowledged."""
        self._not_leader: NotLeader | None = NotLeader(f"nobody is known to lead {name}")
        self._no_appends: GoQueueError | None = self._not_leader
        """Why appends are refused: it does not lead, is about to hand over, or something has to be stored before."""
        self.is_resting = False
        """It is about to hand over: whoever wants to append had better wait (`when_awake`)."""
        self._resting: dict[Callable[[], None], None] = {}
        self._snapshots = ProducerSnapshots(log, name)
        self.producers = self._snapshots.load()
        self.persisted = Persisted(self.high_watermark)
        self.defer = defer
        self._watchers: dict[object, Callable[[], None]] = {}
        self._end_watchers: dict[object, Callable[[], None]] = {}
        self._told_start, self._wake_is_due = log.start_offset, False
        self.freshness: Callable[[Standing], bool] | None = None
        """In a cluster: whether nobody else can have been elected. On one node nobody can."""
        self.needs_session = False
        """Its topic allows unclean elections, which ask nobody in sync: it is led only while its session holds."""
        self.is_unheard = False
        """Too few of its followers were heard of lately for an acknowledgement to come."""
        self.on_cut: dict[object, Callable[[int], None]] = {}
        """Called when the log has lost all from an offset on: whoever has read further begins anew."""

    # -- facts

    @property
    def lacks_copies(self) -> bool:
        """Fewer copies are in sync than its topic asks for, or fewer were heard of lately: what needs an
        acknowledgement of all is not taken."""
        return self.options.min_insync_replicas > self.copies_in_sync or self.is_unheard

    @property
    def may_acknowledge(self) -> bool:
        """It takes appends, and enough copies are in sync for an acknowledgement of all."""
        role, is_held = self.role, self._no_appends is not None or self.log.failure is not None or self.is_unheard
        return not is_held and isinstance(role, Leading) and self.options.min_insync_replicas <= len(role.view.isr)

    def look_who_is_heard(self, monotonic_ms: int) -> None:
        """To be called now and then, in a cluster: asking with every write would cost too much."""
        role = self.role
        if not isinstance(role, Leading):
            return
        role.hear_again(self, monotonic_ms)
        lately = role.heard_lately(monotonic_ms)
        self.is_unheard = role.began_ms is not None and 1 + lately < role.view.minimum
        if role.began_ms is None:
            role.began_ms = monotonic_ms

    @property
    def copies_in_sync(self) -> int:
        return len(self.role.view.isr) if isinstance(self.role, Leading) else 0

    @property
    def last_stable_offset(self) -> int:
        return self.producers.open_transactions.last_stable_offset(self.high_watermark)

    @property
    def failure(self) -> GoQueueError | None:
        """Why it serves nothing, if it does not: its log failed, or it does not lead."""
        return self.log.failure or self._not_leader

    @property
    def knows_end(self) -> bool:
        """All that earlier leaders wrote is known to be committed: before that, the end of the log could seem to go
        back."""
        return isinstance(self.role, Leading) and self.high_watermark >= self.role.start_offset

    @property
    def last_epoch(self) -> int:
        """Of the last batch in its log. NO_EPOCH: there is none."""
        log = self.log
        return log.state.epochs.at(log.end_offset - 1) if log.end_offset > log.start_offset else NO_EPOCH

    @property
    def is_doubtful(self) -> bool:
        """It may lack what an in-sync replica must hold, and must not stand for election."""
        return self.log.state.is_doubtful

    @property
    def is_fresh(self) -> bool:
        """Nobody else can have been elected: what is answered without a committed write may be answered."""
        return self.freshness is None or self.freshness(self)

    def check_fresh(self) -> None:
        """NotLeader: somebody else may lead it by now."""
        if self.freshness is not None and not self.freshness(self):
            raise NotLeader(f"this node was cut off, and may not lead {self.name} any more")

    def is_heard_fresh(self, monotonic_ms: int) -> bool:
        """All followers that could have elected another leader have fetched since."""
        role = self.role
        if not isinstance(role, Leading):
            return False
        role.hear_again(self, monotonic_ms)
        return role.view.is_fresh(monotonic_ms)

    # -- roles

    def lead(self, reign: Reign) -> None:
        """Take writes from now on, in this epoch. StaleEpoch: it is over."""
        self._check_next(reign.epoch)
        self._change_role(Leading(reign, self.options.min_insync_replicas, self.high_watermark, self.end_offset))
        self._not_leader = self._no_appends = None
        self._advance(self.log.acknowledged_offset)

    def follow(self, epoch: int, leader: int) -> None:
        """Take no writes from now on, but what is copied from the leader. StaleEpoch: the epoch is over."""
        self._check_next(epoch)
        self._change_role(Following(epoch, leader))
        self._not_leader = self._no_appends = NotLeader(f"{self.name} is led by node {leader} in epoch {epoch}")

    def rest(self) -> None:
        """Take no appends for a moment, so that another copy can reach the end. What was taken is acknowledged as
        ever."""
        if self._no_appends is None:
            self._no_appends = NotLeader(f"{self.name} is about to be led by another node")
            self.is_resting = True

    def go_on(self) -> None:
        """After `rest`: it leads still, or not."""
        self._no_appends = self._not_leader
        self._end_rest()

    def when_awake(self, call: Callable[[], None]) -> None:
        """Call when it has been handed over, or not: at once, if it does not rest."""
        if self.is_resting:
            self._resting[call] = None
        else:
            call()

    def _end_rest(self) -> None:
        resting, self.is_resting, self._resting = self._resting, False, {}
        for call in resting:
            self.defer(call)

    def step_down(self) -> None:
        """Nobody knows whether it leads still: take no writes until the next epoch says who does."""
        if self.role.is_leader:
            self._change_role(Following(self.leader_epoch, NOBODY))
            self._not_leader = self._no_appends = NotLeader(
                f"this node has lost its session or its copy, and does not lead {self.name} any more"
            )

    def set_isr(self, isr: Iterable[int], revision: int) -> None:
        """As the metadata has it at this revision, which says nothing if it is not later than the last."""
        role = self.role
        if isinstance(role, Leading):
            role.view.on_placement(isr, revision)
            self._advance(self.log.acknowledged_offset)
            self._tell_starts(role)

    def copy_isr(self, host: "Standing") -> None:
        """A companion has the ISR of its partition, and the one that is pending there."""
        role, leading = self.role, host.role
        if not isinstance(role, Leading) or not isinstance(leading, Leading) or role.epoch != leading.epoch:
            return
        view, theirs = role.view, leading.view
        if view.isr != theirs.isr or view.pending_isr != theirs.pending_isr:
            view.set_isr(theirs.isr, theirs.pending_isr)
            self._advance(self.log.acknowledged_offset)

    def _check_next(self, epoch: int) -> None:
        if epoch <= self.leader_epoch:
            raise StaleEpoch(f"epoch {epoch} of {self.name} is over: {self.leader_epoch} has begun")

    def _change_role(self, role: Role) -> None:
        """Whoever waits is failed first: the next reign's watermark says nothing about what they wait for."""
        assert self.high_watermark <= self.end_offset, (self.name, self.high_watermark, self.end_offset)
        waiters = self.role.waiters
        self._not_leader = NotLeader(f"the leader of {self.name} changes: it may have been done or not")
        self._no_appends = self._not_leader
        starts, storing = [], Waiters()
        if isinstance(self.role, Leading):
            starts, storing = self.role.start_waiters, self.role.storing
        self.role, self.leader_epoch, self.is_unheard = role, role.epoch, False
        self.log.is_copy = not role.is_leader
        self._end_rest()
        call_each([*waiters.all(), *storing.all(), *starts])
        self._wake_soon()
        self._tell_end()

    def set_options(self, options: TopicOptions, log_options: LogOptions) -> None:
        """What was changed holds from now on, for the segments to come."""
        self._take_options(options)
        self.log.set_options(log_options)
        if isinstance(self.role, Leading):
            self.role.view.set_minimum(min(options.min_insync_replicas, self.role.replicas))
            self._advance(self.log.acknowledged_offset)

    def _advance(self, acknowledged_offset: int) -> None:
        """Let the high watermark rise as far as the rule of the role allows. Its own log acknowledges so much."""
        role = self.role
        if isinstance(role, Leading):
            self._rise(role.view.advance(acknowledged_offset))

    def _rise(self, high_watermark: int) -> None:
        if high_watermark > self.high_watermark:
            assert high_watermark <= self.log.end_offset, (self.name, high_watermark, self.log.end_offset)
            self.high_watermark = high_watermark
            self._wake_soon()
            if self._end_watchers:
                self._tell_end()

    # -- leading

    def heard(self, fetched: Fetched, monotonic_ms: int) -> Verdict:
        """A follower has told where it stands: what it is to be answered. The high watermark may rise by it."""
        role, log = self.role, self.log
        if not isinstance(role, Leading):
            return Unheard()
        start = log.start_offset
        if fetched.offset < start:
            start = self.first_offset
        verdict = role.view.on_fetch(
            fetched.follower,
            fetched.epoch,
            fetched.offset,
            fetched.last_epoch,
            fetched.told_bound,
            fetched.sent_ms,
            monotonic_ms,
            Ends(start, log.end_offset, log.state.tombstones_to),
            log.acknowledged_offset,
            self.epoch_end,
            fetched.incarnation,
        )
        if isinstance(verdict, Records) and verdict.high_watermark > self.high_watermark:
            self._rise(verdict.high_watermark)
            self.tell_persisted()
        return verdict

    def tell_start(self) -> None:
        """The log may begin later than before: followers do as the leader does, and readers are told."""
        before, self._told_start = self._told_start, self.start_offset
        if before != self._told_start:
            self._tell_end()
            self._wake_soon()

    def heard_start(self, follower: int, start_offset: int) -> None:
        """Where the copy of a follower begins."""
        role = self.role
        if isinstance(role, Leading):
            role.starts[follower] = start_offset
            if role.start_waiters:
                self._tell_starts(role)

    def when_start_told(self, call: Callable[[], None]) -> None:
        """Call when all in-sync copies begin no earlier than this one, at once if they do; also when the leader
        changes (`failure`)."""
        role = self.role
        if not isinstance(role, Leading) or role.has_told_start(self.start_offset):
            call()
        else:
            role.start_waiters.append(call)

    def _tell_starts(self, role: Leading) -> None:
        if role.start_waiters and role.has_told_start(self.start_offset):
            waiters, role.start_waiters = role.start_waiters, []
            call_each(waiters)

    @property
    def first_offset(self) -> int:
        """Where its first batch begins, which may be before its start: a copy begins there."""
        log = self.log
        piece = log.read(log.start_offset, 1)
        return log.start_offset if piece is None else min(log.start_offset, piece.first_offset)

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """The last epoch not above `epoch`, and where it ended.

        An epoch counts from its leader's start, though the log hears of it with its first batch: a client that was told
        of the leader and finds no such epoch would take the log for truncated and begin elsewhere.
        """
        latest = self.log.state.epochs.latest
        if latest < epoch <= self.leader_epoch:
            return epoch if latest == NO_EPOCH or epoch == self.leader_epoch else latest, self.end_offset
        return self.log.epoch_end(epoch)

    # -- waiting

    def when_reached(self, offset: int, call: Callable[[], None]) -> None:
        """Call when the high watermark has reached `offset`, at once if it has; also when it never will (`failure`)."""
        waiters = self.role.waiters
        # Else one that was asked for before has still to be called.
        if self.failure is not None or (offset <= self.high_watermark and waiters.is_first(offset)):
            call()
        else:
            waiters.add(offset, call)

    def when_stored(self, offset: int, call: Callable[[], None]) -> None:
        """Call when its own log has acknowledged all below `offset`, whatever others have of it; also when it never
        will (`failure`)."""
        role = self.role
        stored = self.failure is not None or self.log.acknowledged_offset >= offset
        if stored or not isinstance(role, Leading):
            call()
        else:
            role.storing.add(offset, call)

    @property
    def has_followers(self) -> bool:
        """What it has written is not acknowledged by its own log alone."""
        return isinstance(self.role, Leading) and not self.role.view.is_alone

    def watch(self, who: object, call: Callable[[], None]) -> None:
        """Call whenever there is more to read, or less, or the log failed, until `unwatch`."""
        self._watchers[who] = call

    def unwatch(self, who: object) -> None:
        self._watchers.pop(who, None)

    def watch_end(self, who: object, call: Callable[[], None]) -> None:
        """Call at once whenever the end of the log, its high watermark or its role is another, until `unwatch_end`. It
        comes with every append: the call only takes a note."""
        self._end_watchers[who] = call

    def unwatch_end(self, who: object) -> None:
        self._end_watchers.pop(who, None)

    def _tell_end(self) -> None:
        for call in list(self._end_watchers.values()):
            call()

    def _synced(self) -> None:
        self._advance(self.log.acknowledged_offset)
        if self.log.failure is not None:
            self._wake_soon()
            self._tell_end()
        role = self.role
        if isinstance(role, Following):
            if role.on_synced is not None:
                role.on_synced()
            return
        if role.storing:
            call_each(list(role.storing.all() if self.failure else role.storing.reached(self.log.acknowledged_offset)))
        try:
            self.tell_persisted()
        except Exception as fault:  # noqa: BLE001  it was only to be noted, and what was synced is none the worse for it
            events.error("persisted records not noted", copy=self.name, exc_info=fault)

    def tell_persisted(self, at_ms: int | None = None) -> None:
        """To be called after an append that need not wait for a sync, soon; else it is told with the next."""
        self.persisted.tell(self.high_watermark, at_ms)

    def _wake_soon(self) -> None:
        if not self._wake_is_due and (self.role.waiters or self._watchers):
            self._wake_is_due = True
            self.defer(self._wake)

    def _wake(self) -> None:
        self._wake_is_due = False
        call_each(self._woken())

    def _woken(self) -> Iterator[Callable[[], None]]:
        waiters = self.role.waiters
        yield from waiters.all() if self.failure is not None else waiters.reached(self.high_watermark)
        yield from list(self._watchers.values())
