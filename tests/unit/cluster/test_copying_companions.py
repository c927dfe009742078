"""What belongs to a partition is copied with it, made where it is missing, and counts for who is in sync."""

from goqueue.model.errors import LogPoisoned
from goqueue.records.batch import check_batch
from goqueue.replica.replica import Replica
from goqueue.replica.roles import Leading
from goqueue.testing.simulation import Simulation
from tests.brokers import data
from tests.unit.cluster.copying_hosts import CopyingHost, placed
from tests.unit.cluster.test_copying import run, three, until
from tests.unit.cluster.test_isr import begin


async def append(host: CopyingHost, replica: Replica, *values: bytes) -> None:
    async def appended() -> None:
        replica.append(check_batch(data(*values)), 1000)

    await host.process.spawn(appended())


def end_of(host: CopyingHost, kind: str = "deliveries") -> int:
    found = host.found(kind)
    return -1 if found is None else found.end_offset


def test_a_companion_is_made_and_copied_where_its_partition_is() -> None:
    async def scenario(sim: Simulation) -> None:
        one, two, other = await three(sim)
        await until(sim, lambda: one.noted(2) == one.noted(3) == 0)
        companion = await one.companion()
        assert isinstance(companion.role, Leading)
        assert companion.role.view.isr == {1, 2, 3}
        await append(one, companion, b"fact")
        assert companion.high_watermark == 0
        await until(sim, lambda: companion.high_watermark == 1)
        assert end_of(two) == end_of(other) == 1
        assert end_of(two, "delays") == -1

    run(scenario)


def test_the_next_leader_of_a_partition_leads_its_companions_too() -> None:
    async def scenario(sim: Simulation) -> None:
        one, two, other = await three(sim)
        companion = await one.companion()
        await append(one, companion, b"fact")
        await until(sim, lambda: companion.high_watermark == 1)
        one.kill()
        topic = placed(one.book, 2, 1, (2, 3), (1, 2, 3), min_insync_replicas="2")
        for host in (two, other):
            await host.open(topic)
        heir = two.found()
        assert heir is not None
        assert heir.role.is_leader
        assert heir.leader_epoch == 1
        await append(two, heir, b"next")
        await until(sim, lambda: heir.high_watermark == 2)
        assert end_of(other) == 2

    run(scenario)


def test_a_follower_without_the_companion_does_not_join() -> None:
    async def scenario(sim: Simulation) -> None:
        stored = await begin(sim, (1, 2))
        one, _, other = stored.hosts
        other.replicas.companions.find_or_make = _fails  # type: ignore[method-assign, assignment]
        companion = await one.companion()
        await append(one, companion, b"fact")
        await until(sim, lambda: one.noted(3) == 0 and companion.high_watermark == 1)
        await sim.let_pass("5 s")
        assert stored.placement.isr == (1, 2)
        del other.replicas.companions.find_or_make
        await until(sim, lambda: len(stored.placement.isr) == 3)
        assert end_of(other) == 1

    run(scenario)


def _fails(*_args: object) -> Replica:
    raise LogPoisoned("no such luck")
