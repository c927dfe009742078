"""Followers get what their leader has, in its order, and nothing else; a leader acknowledges what all in-sync copies
have on their disks.
"""

from collections.abc import Awaitable, Callable

import pytest

from goqueue.cluster.fetch_session import FetchSession
from goqueue.model.placements import NodeInfo
from goqueue.model.refusal import NotLeader
from goqueue.model.topics import Topic
from goqueue.ports.peers import PeerRequest
from goqueue.testing.simulation import Simulation
from goqueue.wire.kafka.messages.fetch import FetchRequest
from tests.unit.cluster.copying_hosts import CopyingHost, placed

SEEDS = range(3)


def run(scenario: Callable[[Simulation], Awaitable[None]], seed: int = 1) -> None:
    Simulation(seed, nodes=0).run(scenario)


async def three(sim: Simulation, topic: Callable[[dict[int, NodeInfo]], Topic] | None = None) -> list[CopyingHost]:
    """All three have a copy, the first one leads."""
    book: dict[int, NodeInfo] = {}
    hosts = [await CopyingHost(sim, number, book).start() for number in (1, 2, 3)]
    made = placed(book, 1, 0, (1, 2, 3), (1, 2, 3), min_insync_replicas="2") if topic is None else topic(book)
    for host in hosts:
        await host.open(made)
    return hosts


async def until(sim: Simulation, is_so: Callable[[], bool], seconds: float = 10) -> None:
    end_s = sim.loop.time() + seconds
    while not is_so():
        assert sim.loop.time() < end_s, "it did not come to that"
        await sim.let_pass("1 ms")


@pytest.mark.parametrize("seed", SEEDS)
def test_followers_get_what_the_leader_has_and_it_is_acknowledged_when_all_have_it(seed: int) -> None:
    async def scenario(sim: Simulation) -> None:
        one, two, other = await three(sim)
        await one.append(b"a", b"b")
        assert one.replica().high_watermark == 0
        await until(sim, lambda: one.replica().high_watermark == 2)
        for follower in (two, other):
            assert follower.values() == [b"a", b"b"]
            assert follower.replica().log.synced_offset == 2
            assert follower.replica().last_epoch == 0
        await until(sim, lambda: two.replica().high_watermark == other.replica().high_watermark == 2)

    run(scenario, seed)


def test_what_a_follower_has_not_synced_is_not_acknowledged() -> None:
    async def scenario(sim: Simulation) -> None:
        book: dict[int, NodeInfo] = {}
        one = await CopyingHost(sim, 1, book).start()
        slow = await CopyingHost(sim, 2, book, sync_ms=300).start()
        topic = placed(book, 1, 0, (1, 2), (1, 2))
        await one.open(topic)
        await slow.open(topic)
        await until(sim, lambda: one.noted(2) == 0)
        await one.append(b"a")
        await until(sim, lambda: slow.replica().end_offset == 1)
        await sim.let_pass("200 ms")
        assert slow.replica().log.synced_offset == 0
        assert one.replica().high_watermark == 0
        await until(sim, lambda: one.replica().high_watermark == 1)
        assert slow.replica().log.synced_offset == 1

    run(scenario)


def test_a_slow_sync_of_one_partition_does_not_hold_up_another() -> None:
    async def scenario(sim: Simulation) -> None:
        one, two, _ = await three(sim, lambda book: placed(book, 1, 0, (1, 2), (1, 2), partitions=20))
        for number in range(20):
            await one.append(b"x", partition=number)
        await until(sim, lambda: all(one.replica(number).high_watermark == 1 for number in range(20)))
        assert [two.values(number) for number in range(20)] == [[b"x"]] * 20

    run(scenario)


def test_a_fetch_that_waits_is_answered_as_soon_as_something_is_appended() -> None:
    async def scenario(sim: Simulation) -> None:
        one, *_ = await three(sim)
        await until(sim, lambda: one.noted(2) == 0 and one.noted(3) == 0)
        await sim.let_pass("3 s")
        began_s = sim.loop.time()
        sim.network.weather.slow = 0
        await one.append(b"a")
        await until(sim, lambda: one.replica().high_watermark == 1)
        assert sim.loop.time() - began_s < 0.02

    run(scenario)


def test_idle_partitions_are_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(sim: Simulation) -> None:
        one, *_ = await three(sim, lambda book: placed(book, 1, 0, (1, 2), (1, 2), partitions=200))
        await until(sim, lambda: all(one.noted(2, number) == 0 for number in range(200)))
        await sim.let_pass("2 s")
        requests = one.door.requests
        named = [0]
        take = FetchSession.take

        def counted(session: FetchSession, request: PeerRequest, message: FetchRequest) -> None:
            named[0] += len(message.topics)
            take(session, request, message)

        monkeypatch.setattr(FetchSession, "take", counted)
        await sim.let_pass("10 s")
        assert 15 <= one.door.requests - requests <= 25
        assert named == [0]
        assert all(one.replica(number).is_heard_fresh(int(sim.loop.time() * 1000)) for number in range(200))

    run(scenario)


def test_a_leader_is_fresh_while_its_followers_fetch_and_no_longer() -> None:
    async def scenario(sim: Simulation) -> None:
        one, two, other = await three(sim)
        await until(sim, lambda: one.noted(2) == 0 and one.noted(3) == 0)
        for _ in range(50):
            await sim.let_pass("100 ms")
            assert one.replica().is_heard_fresh(int(sim.loop.time() * 1000))
        other.kill()
        await sim.let_pass("1200 ms")
        assert not one.replica().is_heard_fresh(int(sim.loop.time() * 1000))
        assert not two.replica().is_heard_fresh(int(sim.loop.time() * 1000))

    run(scenario)


def test_a_leader_that_was_restarted_while_it_led_nothing_is_followed_at_once() -> None:
    """A rolling restart: what its followers knew of their sessions with it ended with its process."""

    async def scenario(sim: Simulation) -> None:
        one, two, other = await three(sim)
        sim.network.weather.slow = 0
        led_before = placed(one.book, 2, 1, (1, 2, 3), (1, 2, 3), min_insync_replicas="2")
        led = placed(one.book, 1, 2, (1, 2, 3), (1, 2, 3), min_insync_replicas="2")
        for image in (led_before, led):
            for host in (one, two, other):
                await host.open(image)
            await sim.let_pass("1 s")
        assert (one.noted(2), one.noted(3)) == (0, 0)
        two.kill()
        await sim.let_pass("1 s")
        again = await CopyingHost(sim, 2, one.book, two.disk, start=2).start()
        await again.open(led)
        await until(sim, lambda: one.noted(2) == 0)
        led = placed(one.book, 2, 3, (2, 1, 3), (1, 2, 3), min_insync_replicas="2")
        for host in (again, one, other):
            await host.open(led)
        began_s = sim.loop.time()
        await again.append(b"a")
        await until(sim, lambda: again.replica().high_watermark == 1)
        assert sim.loop.time() - began_s < 0.03

    run(scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_next_leader_has_everything_and_the_old_one_truncates_what_was_never_acknowledged(seed: int) -> None:
    async def scenario(sim: Simulation) -> None:
        one, two, other = await three(sim)
        for number in range(5):
            await one.append(b"kept %d" % number)
        await until(sim, lambda: one.replica().high_watermark == 5)
        sim.network.cut("n1", "*")
        await one.append(b"lost")
        await sim.let_pass("50 ms")
        assert one.replica().high_watermark == 5
        topic = placed(one.book, 2, 1, (2, 3), (1, 2, 3), min_insync_replicas="2")
        for host in (two, other):
            await host.open(topic)
        await two.append(b"new")
        await until(sim, lambda: two.replica().high_watermark == 6)
        sim.network.heal()
        await one.open(topic)
        await until(sim, lambda: one.replica().end_offset == 6 and one.replica().high_watermark == 6)
        assert one.values() == two.values() == other.values() == [*(b"kept %d" % n for n in range(5)), b"new"]
        await until(sim, lambda: ("orders/0", 1) in two.candidates)

    run(scenario, seed)


def test_a_follower_never_truncates_to_the_watermark() -> None:
    async def scenario(sim: Simulation) -> None:
        one, two, other = await three(sim)
        other.kill()
        await one.append(b"a")
        await until(sim, lambda: two.replica().log.synced_offset == 1)
        assert two.replica().high_watermark == 0
        one.kill()
        again = await CopyingHost(sim, 3, one.book, other.disk, start=2).start()
        topic = placed(one.book, 2, 1, (2, 3), (1, 2, 3), min_insync_replicas="2")
        await two.open(topic)
        await again.open(topic)
        await until(sim, lambda: two.replica().high_watermark == 1)
        assert two.values() == again.values() == [b"a"]

    run(scenario)


def test_a_follower_below_the_leaders_start_begins_anew_and_is_doubtful_until_it_is_whole() -> None:
    async def scenario(sim: Simulation) -> None:
        one, two, other = await three(sim, lambda book: placed(book, 1, 0, (1, 2), (1, 2, 3)))
        await one.append(b"a")
        await until(sim, lambda: other.replica().end_offset == 1)
        sim.network.cut("n3", "*")
        for value in (b"b", b"c", b"d"):
            await one.append(value, value)
        await until(sim, lambda: one.replica().high_watermark == 7)

        async def cut_in_the_middle_of_a_batch() -> None:
            one.replica().delete_before(4)

        await one.process.spawn(cut_in_the_middle_of_a_batch())
        doubts = []

        def is_copied() -> bool:
            doubts.append(other.replica().is_doubtful)
            return other.replica().end_offset == 7

        sim.network.heal()
        await until(sim, is_copied)
        await until(sim, lambda: other.replica().start_offset == 4 and not other.replica().is_doubtful)
        assert any(doubts)
        assert other.values()[-3:] == [b"c", b"d", b"d"]
        await until(sim, lambda: two.replica().start_offset == 4)

    run(scenario)


def test_a_copy_that_is_made_in_a_later_epoch_is_doubtful_until_it_has_all() -> None:
    async def scenario(sim: Simulation) -> None:
        book: dict[int, NodeInfo] = {}
        one, two = [await CopyingHost(sim, number, book).start() for number in (1, 2)]
        await one.open(placed(book, 1, 0, (1,), (1,)))
        await one.append(b"a")
        topic = placed(book, 1, 1, (1,), (1, 2))
        await one.open(topic)
        await one.append(b"b")
        sim.network.cut("n1", "n2")
        await two.open(topic)
        assert two.replica().is_doubtful
        sim.network.heal()
        await until(sim, lambda: two.values() == [b"a", b"b"])
        await until(sim, lambda: not two.replica().is_doubtful)
        assert two.replica().log.state.epochs.entries() == [(0, 0), (1, 1)]
        assert one.candidates

    run(scenario)


def test_a_large_backlog_is_copied_on_a_way_of_its_own_and_returns_to_the_others() -> None:
    async def scenario(sim: Simulation) -> None:
        book: dict[int, NodeInfo] = {}
        one, two = [await CopyingHost(sim, number, book).start() for number in (1, 2)]
        topic = placed(book, 1, 0, (1,), (1, 2), partitions=2)
        await one.open(topic)
        for _ in range(40):
            await one.append(b"x" * 500_000)
        two.in_sync = False
        await two.open(topic)
        ways: set[tuple[int, bool]] = set()

        def is_copied() -> bool:
            ways.update(key for key, link in two.links._links.items() if len(link) and two.replica().end_offset > 12)
            return two.replica().end_offset == 40

        await until(sim, is_copied)
        assert (1, True) in ways
        await one.append(b"y")
        await until(sim, lambda: two.replica().end_offset == 41)
        await until(sim, lambda: len(two.links._links[1, True]) == 0)

    run(scenario)


def test_a_fetch_of_an_earlier_life_counts_for_nothing() -> None:
    async def scenario(sim: Simulation) -> None:
        one, *_ = await three(sim)
        await until(sim, lambda: one.noted(2) == 0)
        one.book[2] = one.book[2]._replace(incarnation=99)
        await one.append(b"a")
        await sim.let_pass("2 s")
        assert one.noted(2) == 0
        assert one.replica().high_watermark == 0

    run(scenario)


def test_what_is_deleted_is_waited_for_until_all_in_sync_copies_have_given_it_up() -> None:
    async def scenario(sim: Simulation) -> None:
        one, two, other = await three(sim)
        for value in (b"a", b"b", b"c"):
            await one.append(value)
        await until(sim, lambda: one.replica().high_watermark == 3)
        sim.network.cut("n3", "*")
        told: list[int] = []

        async def delete() -> None:
            one.replica().delete_before(2)
            one.replica().when_start_told(lambda: told.append(other.replica().start_offset))

        await one.process.spawn(delete())
        await until(sim, lambda: two.replica().start_offset == 2)
        await sim.let_pass("1 s")
        assert told == []
        sim.network.heal()
        await until(sim, lambda: told == [2])

    run(scenario)


def test_whoever_waits_for_a_deletion_is_called_when_the_leader_changes() -> None:
    async def scenario(sim: Simulation) -> None:
        one, *_ = await three(sim)
        await one.append(b"a")
        await until(sim, lambda: one.replica().high_watermark == 1)
        sim.network.cut("n1", "*")
        told: list[object] = []

        async def delete() -> None:
            one.replica().delete_before(1)
            one.replica().when_start_told(lambda: told.append(one.replica().failure))

        await one.process.spawn(delete())
        await one.open(placed(one.book, 2, 1, (2, 3), (1, 2, 3)))
        assert len(told) == 1
        assert isinstance(told[0], NotLeader)

    run(scenario)


def test_retention_is_the_leaders_and_followers_do_as_it_does() -> None:
    async def scenario(sim: Simulation) -> None:
        one, two, _ = await three(
            sim, lambda book: placed(book, 1, 0, (1, 2, 3), (1, 2, 3), retention_ms="100", segment_bytes="16384")
        )
        for _ in range(10):
            await one.append(b"x" * 5000)
        await until(sim, lambda: two.replica().high_watermark == 10)

        async def maintain(host: CopyingHost) -> None:
            host.replicas.maintain(2000, 0.0)

        await two.process.spawn(maintain(two))
        assert two.replica().start_offset == 0
        await one.process.spawn(maintain(one))
        assert one.replica().start_offset == 10
        await until(sim, lambda: two.replica().start_offset == 10)
        assert two.values() == []

    run(scenario)


def test_a_copy_that_is_gone_does_not_vouch_for_the_next_one_of_the_same_node() -> None:
    async def scenario(sim: Simulation) -> None:
        one, _, other = await three(sim, lambda book: placed(book, 1, 0, (1, 2), (1, 2, 3)))
        await one.append(b"a")
        await until(sim, lambda: one.noted(3) == 1)

        async def remove() -> None:
            other.replicas.retire("orders", [0])()

        await other.process.spawn(remove())
        await until(sim, lambda: one.noted(3) == -1)
        sim.network.cut("n1", "n3")
        await other.open(placed(one.book, 1, 0, (1, 2), (1, 2, 3)))
        await sim.let_pass("1 s")
        assert one.noted(3) == -1
        sim.network.heal()
        await until(sim, lambda: other.values() == [b"a"])
        await until(sim, lambda: one.noted(3) == 1)

    run(scenario)
