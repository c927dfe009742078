"""One node of the rules' simulation: a real log on a disk in memory, a real replica, the real store on a virtual etcd,
and as little as possible around them."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from goqueue.cluster.etcd.port import EtcdFault
from goqueue.cluster.etcd.store import EtcdStore
from goqueue.machines.partitions import following
from goqueue.model.errors import GoQueueError
from goqueue.model.metadata import (
    ABSENT,
    Committed,
    Compare,
    Conflict,
    Event,
    Key,
    Listing,
    LiveKey,
    Put,
    Step,
)
from goqueue.model.placements import NodeInfo, Placement
from goqueue.replica.replica import Replica
from goqueue.replica.roles import Leading
from goqueue.runtime.clock import Timer
from goqueue.storage.log import Log
from goqueue.storage.options import LogOptions
from goqueue.storage.pending_sync import PendingSync
from goqueue.testing.drive import PowerLost
from goqueue.testing.memory_disk import MemoryDisk
from tests.sim.cluster.checker import PREFIX

if TYPE_CHECKING:
    from tests.sim.cluster.world import World

DIRECTORY = "logs/t/0"
OPTIONS = LogOptions(segment_bytes=16 * 1024, disk_reserve_bytes=0, index_interval_bytes=512, checkpoint_bytes=1024)
TTL_S = 4
SAVE_MS = 5000


class SimNode:
    """A machine: what it has on its disk outlives its lives."""

    def __init__(self, world: "World", node_id: int) -> None:
        self.world = world
        self.node_id = node_id
        self.disk = MemoryDisk()
        self.rate = 1.0
        """How fast its clock is."""
        self.life: Life | None = None
        self.lives = 0
        self.saved_watermark = 0
        self.is_wiped = False
        """Its disk was replaced, and it has not come in sync since."""
        self.wiped_in = 0
        """In which of its lives."""
        self.sync_ms = (0.2, 5.0)
        self._durable_end = 0

    @property
    def synced_end(self) -> int:
        """What would survive the machine now."""
        if self.life is not None and self.life.replica is not None:
            return self.life.replica.log.synced_offset
        return self._durable_end

    def start(self) -> None:
        assert self.life is None
        self.lives += 1
        self.life = self.world.make_life(self)
        self.life.guard(self.life.begin)()

    def crash(self, *, is_power_lost: bool = True) -> None:
        if self.life is None:
            return
        if self.life.replica is not None:
            self._durable_end = self.life.replica.log.synced_offset
        self.life.end()
        self.life = None
        self.disk = self.disk.crash(self.world.dice) if is_power_lost else self.disk.crashed()

    def wipe(self) -> None:
        self.crash()
        self.disk, self._durable_end, self.saved_watermark = MemoryDisk(), 0, 0
        self.is_wiped, self.wiped_in = True, self.lives


class NodeClock:
    """`goqueue.runtime.clock.Clock`, of one life: fast or slow, and over with it."""

    def __init__(self, life: "Life") -> None:
        self._life = life

    def now_ms(self) -> int:
        return int(self._life.node.world.clock.monotonic_s() * 1000)

    def monotonic_s(self) -> float:
        return self._life.now_ms() / 1000

    def call_soon(self, call: Callable[[], None]) -> object:
        return self._life.node.world.clock.call_soon(self._life.guard(call))

    def call_after(self, delay_ms: float, call: Callable[[], None]) -> Timer:
        return self._life.node.world.clock.call_after(delay_ms / self._life.node.rate, self._life.guard(call))

    def watch_steps(self, call: Callable[[], None]) -> Timer:
        raise NotImplementedError


class Life:
    """From a start to a crash: the session, the image and the log. What it does with them is in `duties`."""

    def __init__(self, node: SimNode) -> None:
        self.node = node
        self.number = node.lives
        self.is_over = False
        self.clock = NodeClock(self)
        self.etcd = node.world.etcd.client(f"n{node.node_id}")
        self.store = EtcdStore(self.etcd, PREFIX, self.clock)
        self.known: dict[Key, Event] = {}
        self.replica: Replica | None = None
        self.lease = 0
        self.incarnation = 0
        """0: it has no session."""
        self.valid_until_ms = 0.0
        self.seen_role: object = None
        self.seen_watermark = 0
        self._is_registering = False
        self._is_syncing = False

    # -- time

    def now_ms(self) -> int:
        return int(self.node.world.ms * self.node.rate)

    def guard(self, call: Callable[..., Any]) -> Callable[..., None]:
        """Run it in this life, and look at what has come of it."""

        def run(*args: Any) -> None:
            if self.is_over:
                return
            try:
                call(*args)
            except PowerLost:
                self.node.crash()
                self.node.world.restart_later(self.node)
                return
            self.node.world.checker.look(self.node)

        return run

    def after(self, delay_ms: float, call: Callable[[], None]) -> Timer:
        return self.clock.call_after(delay_ms, call)

    def end(self) -> None:
        self.is_over = True
        self.etcd.close()

    # -- the session

    def begin(self) -> None:
        self.store.watch(self.guard(self._changed), self.guard(lambda: self.store.list(self.guard(self._listed))))
        self.store.start()
        self.after(1000, self._renew)
        self.after(SAVE_MS, self._save)

    def _save(self) -> None:
        self.after(SAVE_MS, self._save)
        if self.replica is not None:
            self.node.saved_watermark = self.replica.high_watermark

    def register(self) -> None:
        if self.incarnation or self._is_registering:
            return
        self._is_registering = True
        before = self.known.get(LiveKey(self.node.node_id))
        if before is not None and isinstance(before.value, NodeInfo):
            self.etcd.revoke(before.value.lease, self.guard(lambda _: self._register_later()))
        else:
            self.etcd.grant(TTL_S, self.guard(self._granted))

    def _register_later(self) -> None:
        self._is_registering = False
        self.after(300, self.register)

    def _granted(self, lease: int | EtcdFault) -> None:
        if isinstance(lease, EtcdFault):
            self._register_later()
            return
        key = LiveKey(self.node.node_id)
        put = Put(key, NodeInfo(self.node.node_id, 0, started_ms=self.number), lease)
        self.valid_until_ms = 0.0
        self.store.txn(Step((Compare(key, ABSENT),), (put,)), self.guard(partial(self._registered, lease)))

    def _registered(self, lease: int, outcome: Committed | Conflict | GoQueueError) -> None:
        if not isinstance(outcome, Committed):
            self.etcd.revoke(lease, lambda _: None)
            self._register_later()
            return
        self._is_registering = False
        self.lease, self.incarnation = lease, outcome.revision
        self._look_at_session()
        self.look()

    def _renew(self) -> None:
        self.after(1000, self._renew)
        if self.incarnation:
            self.etcd.renew(self.lease, self.guard(partial(self._renewed, self.lease, self.now_ms())))

    def _renewed(self, lease: int, sent_ms: int, ttl_s: int | EtcdFault) -> None:
        if lease != self.lease or isinstance(ttl_s, EtcdFault):
            return
        if ttl_s == 0:
            self.lose_session()
        else:
            self.valid_until_ms = max(self.valid_until_ms, self.counted_from(sent_ms) + TTL_S * 1000 * 2 / 3)

    def counted_from(self, sent_ms: int) -> float:
        """A renewal counts from when it was sent."""
        return sent_ms

    @property
    def is_session_valid(self) -> bool:
        return self.incarnation > 0 and self.now_ms() < self.valid_until_ms

    def _look_at_session(self) -> None:
        """Its own key, as the watch has told it."""
        mine = self.known.get(LiveKey(self.node.node_id))
        if (
            self.incarnation
            and (mine is None or mine.revision > self.incarnation)
            and self.store.revision >= self.incarnation
        ):
            self.lose_session()

    def lose_session(self) -> None:
        if self.incarnation:
            self.incarnation, self.lease, self.valid_until_ms = 0, 0, 0.0
            if self.replica is not None:
                self.replica.step_down()
            self.on_session_lost()
            self.register()

    # -- the image

    def _listed(self, listing: Listing) -> None:
        self.known = {entry.key: entry for entry in listing.entries}
        self._open()
        self._look_at_session()
        self.register()
        self.look()

    def _changed(self, changed: Any) -> None:
        for event in changed:
            if event.value is None:
                self.known.pop(event.key, None)
            else:
                self.known[event.key] = event
        self._look_at_session()
        self.look()

    @property
    def nodes(self) -> dict[int, NodeInfo]:
        return {event.value.node_id: event.value for event in self.known.values() if isinstance(event.value, NodeInfo)}

    @property
    def placement(self) -> Placement | None:
        event = self.known.get(self.node.world.key)
        return event.value if event is not None and isinstance(event.value, Placement) else None

    # -- the log

    def _open(self) -> None:
        placement = self.placement
        if self.replica is not None or placement is None:
            return
        node = self.node
        log = Log.open(
            node.disk,
            DIRECTORY,
            OPTIONS,
            self.clock.now_ms(),
            topic_id=node.world.key.topic_id,
            # Made with it: a crash in between must not leave it without the mark.
            is_doubtful=following.is_made_doubtful(placement.epoch),
        )
        why = following.doubt(log.end_offset, node.saved_watermark, is_unsynced=False, machine_went_down=False)
        if why and not log.state.is_doubtful:
            log.state.is_doubtful = True
            log.save_state()
        log.on_dirty = self._sync_soon
        self.replica = Replica(
            log,
            "t/0",
            reign=None,
            options=node.world.options,
            defer=self.clock.call_soon,
            high_watermark=node.saved_watermark,
        )

    def _sync_soon(self, log: Log) -> None:
        if self._is_syncing:
            return
        self._is_syncing = True

        def finish() -> None:
            self._is_syncing = False
            if log.failure is not None:
                return
            pending.run()
            log.finish_sync(pending)

        pending = PendingSync(log)
        self.after(self.node.world.dice.uniform(*self.node.sync_ms), finish)

    @property
    def leading(self) -> Leading | None:
        role = self.replica.role if self.replica is not None else None
        return role if isinstance(role, Leading) else None

    # -- what the duties add

    def look(self) -> None:
        """Something in the image has changed."""

    def on_session_lost(self) -> None: ...
