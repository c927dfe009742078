"""Who has caught up joins the in-sync replicas, who lags or is dead leaves, never below the minimum; and nothing counts
before it is confirmed.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from goqueue.cluster.isr import PER_TURN, IsrKeeper
from goqueue.cluster.store import OnDone, OnEvents, OnListed
from goqueue.model.errors import GoQueueError, Indeterminate
from goqueue.model.metadata import Committed, Compare, Conflict, LiveKey, PartitionKey, Step
from goqueue.model.placements import NodeInfo, Placement
from goqueue.model.topics import Image, Topic
from goqueue.replica.roles import Leading
from goqueue.testing import VirtualClock
from goqueue.testing.simulation import Simulation
from tests.brokers import TOPIC_ID
from tests.unit.cluster.copying_hosts import CopyingHost, placed
from tests.unit.cluster.test_copying import until


class Stored:
    """The metadata of one topic, which all hosts are told of a little later."""

    def __init__(self, sim: Simulation, hosts: list[CopyingHost], topic: Topic, book: dict[int, NodeInfo]) -> None:
        self._sim = sim
        self.hosts = hosts
        self.topic = topic
        self.book = book
        self.revision = topic.placements[0].revision
        self.loses_answers = False
        self.is_deaf = False
        self.late: list[Step] = []
        self.history: list[tuple[int, ...]] = []
        self.steps = 0

    @property
    def image(self) -> Image:
        return Image(self.revision, {"orders": self.topic}, dict(self.book))

    @property
    def placement(self) -> Placement:
        return self.topic.placements[0]

    def list(self, on_listed: OnListed) -> None:
        raise NotImplementedError

    def watch(self, on_events: OnEvents, on_lost: Callable[[], None]) -> None:
        raise NotImplementedError

    def txn(self, step: Step, on_done: OnDone) -> None:
        self.steps += 1
        if self.is_deaf:
            self.late.append(step)
            outcome: Committed | Conflict | GoQueueError = Indeterminate("lost on the way")
        else:
            outcome = self.do(step)
            if self.loses_answers:
                outcome = Indeterminate("the answer is lost")
        asyncio.get_running_loop().call_later(0.003, on_done, outcome)

    def do(self, step: Step) -> Committed | Conflict:
        for compare in step.compares:
            match compare:
                case Compare(PartitionKey(), revision) if self.placement.revision != revision:
                    return Conflict(self.revision)
                case Compare(LiveKey(node_id), life) if self._life(node_id) != life:
                    return Conflict(self.revision)
        self.revision += 1
        for put in step.puts:
            assert isinstance(put.value, Placement)
            self.set(put.value)
        return Committed(self.revision)

    def _life(self, node_id: int) -> int:
        node = self.book.get(node_id)
        return 0 if node is None else node.incarnation

    def set(self, placement: Placement) -> None:
        self.topic = placed_as(self.topic, placement._replace(revision=self.revision))
        self.history.append(placement.isr)
        self.tell()

    def tell(self) -> None:
        self._telling = asyncio.ensure_future(self._tell())

    async def _tell(self) -> None:
        await self._sim.let_pass("5 ms")
        topic = self.topic
        for host in self.hosts:
            if not host.process.life.is_over:
                await host.open(topic)
                keeper = self.keepers.get(host.node_id)
                if keeper is not None:
                    await host.process.spawn(_call(keeper.image_changed))

    keepers: dict[int, IsrKeeper]

    async def keep(self, host: CopyingHost) -> None:
        async def keep() -> None:
            keeper = IsrKeeper(host.copies, lambda: self.image, self, host.peers.clock)
            host.fetches.on_candidate = keeper.candidate
            self.keepers[host.node_id] = keeper
            keeper.start()

        await host.process.spawn(keep())


async def _call(call: Callable[[], Any]) -> None:
    call()


def placed_as(topic: Topic, placement: Placement) -> Topic:
    return Topic(topic.name, topic.id, topic.partitions, topic.overrides, (placement,) * topic.partitions)


async def begin(sim: Simulation, isr: tuple[int, ...], minimum: int = 2, nodes: tuple[int, ...] = (1, 2, 3)) -> Stored:
    book: dict[int, NodeInfo] = {}
    hosts = [await CopyingHost(sim, number, book).start() for number in nodes]
    topic = placed(book, 1, 0, isr, (1, 2, 3), min_insync_replicas=str(minimum))
    assert topic.id == TOPIC_ID
    stored = Stored(sim, hosts, topic, book)
    stored.keepers = {}
    for host in hosts:
        await host.open(topic)
        await stored.keep(host)
    return stored


def run(scenario: Callable[[Simulation], Awaitable[None]], seed: int = 1) -> None:
    Simulation(seed, nodes=0).run(scenario)


def view_of(host: CopyingHost) -> Any:
    role = host.replica().role
    assert isinstance(role, Leading)
    return role.view


def test_a_follower_that_has_caught_up_joins() -> None:
    async def scenario(sim: Simulation) -> None:
        stored = await begin(sim, (1, 2))
        await stored.hosts[0].append(b"a")
        await until(sim, lambda: stored.placement.isr == (1, 2, 3))
        await until(sim, lambda: view_of(stored.hosts[0]).isr == {1, 2, 3})
        assert not view_of(stored.hosts[0]).pending_isr

    run(scenario)


def test_a_dead_follower_leaves_at_once_and_writes_go_on() -> None:
    async def scenario(sim: Simulation) -> None:
        stored = await begin(sim, (1, 2, 3))
        one, _, other = stored.hosts
        await until(sim, lambda: one.noted(2) == one.noted(3) == 0)
        other.kill()
        await one.append(b"a")
        await sim.let_pass("500 ms")
        assert one.replica().high_watermark == 0
        del stored.book[3]
        stored.tell()
        await until(sim, lambda: one.replica().high_watermark == 1, seconds=1)
        assert stored.placement.isr == (1, 2)

    run(scenario)


def test_a_follower_that_lags_leaves_after_ten_seconds_but_never_below_the_minimum() -> None:
    async def scenario(sim: Simulation) -> None:
        stored = await begin(sim, (1, 2, 3))
        one = stored.hosts[0]
        await until(sim, lambda: one.noted(2) == one.noted(3) == 0)
        sim.network.cut("n3", "*")
        await one.append(b"a")
        await sim.let_pass("8 s")
        assert stored.history == []
        await until(sim, lambda: stored.placement.isr == (1, 2))
        await until(sim, lambda: one.replica().high_watermark == 1)
        assert not one.replica().lacks_copies
        sim.network.cut("n2", "*")
        await one.append(b"b")
        await sim.let_pass("20 s")
        assert stored.placement.isr == (1, 2)
        assert one.replica().high_watermark == 1
        assert one.replica().lacks_copies
        sim.network.heal()
        await until(sim, lambda: stored.placement.isr == (1, 2, 3), seconds=20)
        await until(sim, lambda: one.replica().high_watermark == 2)
        assert not one.replica().lacks_copies

    run(scenario)


def test_a_proposal_holds_the_watermark_back_before_it_is_confirmed() -> None:
    async def scenario(sim: Simulation) -> None:
        stored = await begin(sim, (1, 2))
        one, _, other = stored.hosts
        stored.is_deaf = True
        await until(sim, lambda: view_of(one).pending_isr == {1, 2, 3})
        sim.network.cut("n3", "*")
        await one.append(b"a")
        await sim.let_pass("3 s")
        assert one.replica().high_watermark == 0
        assert view_of(one).is_unsure
        stored.is_deaf = False
        await until(sim, lambda: one.replica().high_watermark == 1)
        assert stored.placement.isr == (1, 2)
        assert [stored.do(step) for step in stored.late[:1]] == [Conflict(stored.revision)]
        assert other.replica().end_offset == 0

    run(scenario)


def test_a_change_whose_answer_was_lost_counts_when_the_metadata_shows_it() -> None:
    async def scenario(sim: Simulation) -> None:
        stored = await begin(sim, (1, 2))
        stored.loses_answers = True
        await until(sim, lambda: view_of(stored.hosts[0]).isr == {1, 2, 3})
        assert not view_of(stored.hosts[0]).is_unsure

    run(scenario)


def test_writes_that_never_pause_do_not_make_a_follower_lag() -> None:
    async def scenario(sim: Simulation) -> None:
        stored = await begin(sim, (1, 2, 3))
        one = stored.hosts[0]
        for _ in range(3000):
            await one.append(b"x")
            await sim.let_pass("5 ms")
        assert stored.history == []
        await until(sim, lambda: one.replica().high_watermark == 3000)

    run(scenario)


def test_a_leader_whose_log_has_failed_hands_over() -> None:
    async def scenario(sim: Simulation) -> None:
        stored = await begin(sim, (1, 2, 3))
        one, two, _ = stored.hosts
        await one.append(b"a")
        await until(sim, lambda: one.replica().high_watermark == 1)
        one.replica().log.poison("write", OSError("no such luck"))
        await until(sim, lambda: stored.placement.leader == 2)
        await until(sim, lambda: two.replica().role.is_leader)
        assert stored.placement.epoch == 1

    run(scenario)


def test_a_leader_with_a_damaged_batch_hands_over_and_copies_it_from_the_next() -> None:
    async def scenario(sim: Simulation) -> None:
        stored = await begin(sim, (1, 2, 3))
        one, two, _ = stored.hosts
        await one.append(b"a")
        await until(sim, lambda: one.replica().high_watermark == 1)
        one.replica().log.damaged_batches = 1
        await until(sim, lambda: two.replica().role.is_leader)
        await until(sim, lambda: one.replica().log.damaged_batches == 0)
        await until(sim, lambda: one.values() == [b"a"] and not one.replica().is_doubtful)
        await until(sim, lambda: len(stored.placement.isr) == 3)

    run(scenario)


class Turns(IsrKeeper):
    """Counts what is looked at in each turn."""

    def begin(self, hosts: int) -> None:
        self.turns: list[int] = []
        self._due.update(dict.fromkeys(range(hosts)))  # type: ignore[arg-type]
        self._gather_soon(0)

    def _gather(self) -> None:
        self.turns.append(0)
        super()._gather()

    def _propose(self, host: object) -> None:
        self.turns[-1] += 1


def test_what_is_due_at_once_is_looked_at_in_slices() -> None:
    """All that a node leads is due when another one is gone, and others want to be served meanwhile."""
    nothing: Any = None
    clock = VirtualClock()
    keeper = Turns(nothing, Image, nothing, clock)
    keeper.begin(2 * PER_TURN + 1)
    clock.advance(1)
    assert keeper.turns == [PER_TURN, PER_TURN, 1]
