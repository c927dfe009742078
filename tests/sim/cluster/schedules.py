"""Courses of events that seeds hardly ever find, written down one by one. Each holds under the rules, and breaks under
the mutant that it was written for."""

from array import array
from collections.abc import Callable
from typing import Any

from goqueue.broker.delays.partition import PartitionDelays
from goqueue.cluster.copies import CopyId
from goqueue.cluster.followed import Followed
from goqueue.cluster.handing_over import HandingOver, Move
from goqueue.cluster.isr import IsrKeeper
from goqueue.machines.delays.facts import Firing, packed
from goqueue.machines.delays.jobs import firing_job
from goqueue.machines.partitions.following import Answered, FollowerView, OwnLog
from goqueue.machines.partitions.producer_state import ProducerStates
from goqueue.machines.partitions.replication import BeginAnew, Ends, LeaderView
from goqueue.model.placements import NodeInfo
from goqueue.model.topics import Image, TopicOptions
from goqueue.records.batch import Batch, check_batch, split
from goqueue.records.build import build_batch
from goqueue.replica.reads import batches_from
from goqueue.replica.replica import Replica
from goqueue.replica.roles import Fetched, Following, Reign
from goqueue.storage.log import Log
from goqueue.testing.memory_disk import MemoryDisk
from goqueue.testing.virtual_clock import VirtualClock
from goqueue.wire.kafka.messages.fetch import FetchedPartition
from tests.sim.cluster.duties import DutifulLife, NoCompanions
from tests.sim.cluster.sim_node import DIRECTORY, OPTIONS
from tests.sim.cluster.world import Producer, World
from tests.unit.storage.test_copying import compacted, raw

# -- what a leader believes


def fetch(view: LeaderView, follower: int, offset: int, epoch: int) -> Any:
    return view.on_fetch(follower, epoch, offset, 5, 0, 0, 0, Ends(0, 100), 100, lambda last: (last, 100))


def fetches_of_other_epochs() -> None:
    view = LeaderView(1, 5, (1, 2), 1, 0)
    for epoch in (4, 6):
        fetch(view, 2, 90, epoch)
        assert view.high_watermark == 0
        assert not view.is_fresh(500)


def a_member_that_is_not_confirmed() -> None:
    """An operator's election has left fewer than the minimum."""
    view = LeaderView(1, 5, (1,), 2, 0)
    view.propose((1, 2))
    fetch(view, 2, 100, 5)
    assert view.high_watermark == 0
    view.on_placement((1, 2), 7)
    assert view.advance(100) == 100


# -- one copy


def record(producer: int, sequence: int) -> Batch:
    rows: list[Any] = [(1000, None, b"%d-%d" % (producer, sequence), [])]
    data = build_batch(rows, producer_id=producer, producer_epoch=0, base_sequence=sequence)
    return check_batch(memoryview(data))


def open_copy(disk: MemoryDisk, defer: Callable[[Callable[[], None]], object]) -> Replica:
    log = Log.open(disk, DIRECTORY, OPTIONS, 0)
    return Replica(log, "t/0", reign=None, options=TopicOptions(), defer=defer)


def sent_by_a_leader(epoch: int, *batches: Batch) -> list[Batch]:
    log = Log.open(MemoryDisk(), DIRECTORY, OPTIONS, 0)
    log.append(batches, epoch, 0)
    found = log.read(0, 100_000)
    assert found is not None
    return list(split(memoryview(bytearray(found.read()))))


def a_snapshot_behind_the_cut() -> None:
    """What it knew of a producer was never committed."""
    disk = MemoryDisk()
    copy = open_copy(disk, lambda call: call())
    copy.lead(Reign(1, 1, (1, 2), 2))
    for sequence in range(3):
        copy.append(record(7, sequence), 0)
    copy.sync()
    copy.save_producers()
    copy.follow(2, 2)
    copy.truncate(0)
    copy.append_copied(sent_by_a_leader(2, *(record(8, sequence) for sequence in range(5))), 5, 0)
    copy.sync()
    again = open_copy(disk.crashed(), lambda call: call())
    rebuilt = ProducerStates()
    rebuilt.replay(batches_from(again.log, 0))
    assert again.producers.encode() == rebuilt.encode()


def waiters_of_an_earlier_reign() -> None:
    """KAFKA-20634: the next reign's watermark completes the last reign's writes."""
    later: list[Callable[[], None]] = []
    copy = open_copy(MemoryDisk(), later.append)
    copy.lead(Reign(1, 1, (1, 2), 2))
    appended = copy.append(record(7, 0), 0)
    acknowledged: list[bool] = []
    copy.when_reached(appended.next_offset, lambda: acknowledged.append(copy.failure is None))
    copy.follow(2, 2)
    copy.truncate(0)
    copy.append_copied(sent_by_a_leader(2, record(8, 0)), 1, 0)
    copy.lead(Reign(3, 1, (1,), 2))
    copy.sync()
    for call in later:
        call()
    assert acknowledged == [False]


def a_copy_of_a_compacted_log() -> None:
    """Gaps that its leader did not tell of would be lost data to the next recovery."""
    source, disk = compacted(), MemoryDisk()
    copy = open_copy(disk, lambda call: call())
    copy.follow(1, 2)
    assert isinstance(copy.role, Following)
    followed = Followed(CopyId(b"t" * 16, 0), copy, copy.role, NoCompanions(), Mute())
    found = source.read(0, 100_000)
    assert found is not None
    while found is not None:
        said = FetchedPartition(
            high_watermark=source.end_offset,
            records=memoryview(bytearray(found.read())),
            gq_compacted_to=source.state.compacted_to,
        )
        followed.take(said, 0)
        copy.sync()
        found = source.read(copy.end_offset, 100_000) if copy.end_offset > found.first_offset else None
    again = open_copy(disk.crashed(), lambda call: call())
    assert raw(again.log) == raw(source)
    assert not again.log.report.missing


class Mute:
    """`cluster.followed.Link`: nobody asks."""

    def name(self, followed: Followed) -> None: ...

    def name_later(self, followed: Followed, delay_ms: int) -> None: ...

    def remove(self, copy: CopyId) -> None: ...

    def adopt(self, replica: Replica) -> None: ...


def a_bound_of_another_leader() -> None:
    """One leader has told of tombstones up to 80; the next has dropped others, up to 60, and the copy is at 40."""
    view = FollowerView(5)
    view.on_answer(Answered(BeginAnew(0), tombstones_to=80), OwnLog(0, 0, 0), lambda epoch: (-1, -1))
    asked = view.fetch(OwnLog(0, 40, 40), 5)
    assert asked is not None
    assert asked.told_bound == 80
    asked = FollowerView(6).fetch(OwnLog(0, 40, 40), 5)
    assert asked is not None
    other = LeaderView(1, 6, (1,), 1, 0)
    verdict = other.on_fetch(
        2, 6, asked.offset, 5, asked.told_bound, 0, 0, Ends(0, 100, 60), 100, lambda last: (last, 100)
    )
    assert verdict == BeginAnew(0)


def a_schedule_whose_place_is_not_committed() -> None:
    """What was published there may be lost, and be sent again: both would fire."""
    copy = open_copy(MemoryDisk(), lambda call: call())
    copy.lead(Reign(1, 1, (1, 2), 2))
    copy.append(record(7, 0), 0)
    copy.sync()
    delays = object.__new__(PartitionDelays)
    delays._reach = 0
    delays._replica = lambda: copy  # type: ignore[method-assign]
    place = packed(array("q", [0]))
    job = firing_job(Firing("t", b"t" * 16, 0, 1, 0, place, place, place))
    fired: list[int] = []
    delays._when_places_are_durable(job, lambda: fired.append(copy.high_watermark))
    assert fired == []
    copy.heard(Fetched(2, 0, 1, 1, 1, 0, 0), 0)
    assert fired == [1]


def a_target_that_is_not_at_the_end() -> None:
    """It is in sync, so that nothing acknowledged by all would be lost: but what was acknowledged by one would be."""
    copy = open_copy(MemoryDisk(), lambda call: call())
    copy.lead(Reign(1, 1, (1, 2), 2))
    copy.append(record(7, 0), 0)
    copy.sync()
    clock = VirtualClock()
    keeper = IsrKeeper(Alone(), Image, None, clock)  # type: ignore[arg-type]
    handing_over = HandingOver(None, Image, None, keeper, clock)  # type: ignore[arg-type]
    move = Move(copy, (2,))
    copy.heard(Fetched(2, 0, 1, 0, -1, 0, 0), 0)
    assert handing_over._target(move) is None
    copy.heard(Fetched(2, 0, 1, 1, 1, 0, 0), 0)
    assert handing_over._target(move) == 2


class Alone:
    """`cluster.copies.Copies`, of a partition without companions."""

    def companions_of(self, host: Replica) -> list[Replica]:
        return []


# -- several nodes


class Schedule:
    """A world without trouble, but for what is done to it here."""

    def __init__(self, minimum: int) -> None:
        self.world = World(0, nodes=3, minimum=minimum)
        self.world.begin()
        self.producers = [Producer(self.world, number) for number in (1, 2)]
        self.until(lambda: self.world.checker.acknowledged > 20)

    def until(self, is_so: Callable[[], bool], ms_max: float = 30_000) -> None:
        for _ in range(int(ms_max)):
            if is_so():
                return
            self.world.clock.advance(1)
        raise TimeoutError("it never came about")

    def pass_ms(self, ms: float) -> None:
        for _ in range(int(ms / 10)):
            self.world.clock.advance(10)
            self.world.read()

    @property
    def isr(self) -> tuple[int, ...]:
        assert self.world.checker.placement is not None
        return tuple(sorted(self.world.checker.placement.isr))

    @property
    def leader(self) -> DutifulLife:
        assert self.world.checker.placement is not None
        life = self.world.nodes[self.world.checker.placement.leader].life
        assert isinstance(life, DutifulLife)
        return life

    @property
    def host(self) -> str:
        return f"n{self.leader.node.node_id}"

    def follower_out_of_sync(self) -> int:
        other = max(node_id for node_id in self.world.nodes if node_id != self.leader.node.node_id)
        self.world.nodes[other].crash()
        self.until(lambda: other not in self.isr)
        return other

    def return_of(self, node_id: int) -> None:
        """Its session is known to the leader; it has not caught up yet."""
        self.world.nodes[node_id].start()
        self.until(lambda: node_id in self.leader.nodes)

    def finish(self) -> None:
        self.world.end_well()


def a_growth_whose_answer_is_lost() -> None:
    """The leader repeats what it asked for, finds it refused, and must not take that for the first answer."""
    schedule = Schedule(minimum=1)
    world, other = schedule.world, schedule.follower_out_of_sync()
    schedule.return_of(other)
    leader, weather = schedule.leader, world.etcd.weather_of(schedule.host)
    weather.unanswered, weather.watch_ms = 1.0, (9000.0, 9000.0)
    schedule.until(lambda: other in schedule.isr)
    weather.unanswered = 0.0
    world.cut(leader.node.node_id, other)
    schedule.pass_ms(8000)
    schedule.finish()


def a_deposed_leader_with_slow_answers() -> None:
    """Its last renewal was answered late, and its lease revoked meanwhile."""
    schedule = Schedule(minimum=2)
    world, leader = schedule.world, schedule.leader
    leader.node.rate = 0.9
    weather = world.etcd.weather_of(schedule.host)
    weather.delay_ms, weather.watch_ms = (950.0, 960.0), (9000.0, 9000.0)
    lease = world.etcd.leases[leader.lease]
    schedule.pass_ms(5000)
    renewed_s = lease.until_s
    schedule.until(lambda: lease.until_s > renewed_s)
    world.etcd.cut(schedule.host, requests=True, answers=False)
    for other in world.nodes:
        if other != leader.node.node_id:
            world.cut(leader.node.node_id, other)
    dead = next(life for life in world.nodes.values() if life.life is not leader and life.life is not None).life
    assert dead is not None
    known = dead.nodes[leader.node.node_id]
    assert isinstance(known, NodeInfo)
    world.declare(dead, known)
    schedule.pass_ms(6000)
    schedule.finish()


def a_disk_lost_between_fetch_and_growth() -> None:
    """KIP-903: the leader proposes what a follower was in its life before."""
    schedule = Schedule(minimum=2)
    world, other = schedule.world, schedule.follower_out_of_sync()
    schedule.return_of(other)
    leader, weather = schedule.leader, world.etcd.weather_of(schedule.host)
    weather.late, weather.late_ms = 1.0, (2600.0, 2600.0)
    view = leader.leading.view if leader.leading is not None else None
    assert view is not None
    schedule.until(lambda: other in view.pending_isr)
    world.nodes[other].wipe()
    world.nodes[other].sync_ms = (4000.0, 4000.0)
    world.nodes[other].start()
    schedule.pass_ms(2700)
    weather.late = 0.0
    schedule.pass_ms(3000)
    schedule.finish()
