"""Who wants only the leader's log to have a record (acks 1) does not wait for followers."""

from goqueue.model.placements import NodeInfo
from goqueue.model.refusal import NotLeader
from goqueue.records.batch import check_batch
from goqueue.testing.simulation import Simulation
from tests.brokers import data
from tests.unit.cluster.copying_hosts import CopyingHost, placed
from tests.unit.cluster.test_copying import run, three, until


def test_who_wants_only_the_leaders_log_does_not_wait_for_followers() -> None:
    async def scenario(sim: Simulation) -> None:
        one, *_ = await three(sim)
        await until(sim, lambda: one.noted(2) == one.noted(3) == 0)
        sim.network.cut("n1", "*")
        told: list[str] = []

        async def append() -> None:
            replica = one.replica()
            appended = replica.append(check_batch(data(b"a")), 1000)
            replica.when_stored(appended.next_offset, lambda: told.append("stored"))
            replica.when_reached(appended.next_offset, lambda: told.append("acknowledged"))
            assert replica.has_followers

        await one.process.spawn(append())
        assert told == []
        await until(sim, lambda: told == ["stored"])
        await sim.let_pass("1 s")
        assert told == ["stored"]
        sim.network.heal()
        await until(sim, lambda: told == ["stored", "acknowledged"])

    run(scenario)


def test_whoever_waits_for_the_leaders_log_is_called_when_it_leads_no_more() -> None:
    async def scenario(sim: Simulation) -> None:
        book: dict[int, NodeInfo] = {}
        one = await CopyingHost(sim, 1, book, sync_ms=500).start()
        await one.open(placed(book, 1, 0, (1, 2), (1, 2)))
        told: list[object] = []

        async def append() -> None:
            replica = one.replica()
            appended = replica.append(check_batch(data(b"a")), 1000)
            replica.when_stored(appended.next_offset, lambda: told.append(replica.failure))

        await one.process.spawn(append())
        await one.open(placed(book, 2, 1, (1, 2), (1, 2)))
        assert [type(one) for one in told] == [NotLeader]

    run(scenario)
