"""A store is a store, whoever keeps it: etcd, or the supervisor of the members of one machine."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import uvloop

from goqueue.cluster.etcd.port import EtcdFault, KeyCompare, KeyPut, KeyValue, Range, Txn
from tests.integration.etcd_members import Etcds
from tests.integration.store_port import Asker, Connect, OfEtcd, OfSupervisor, StoreKind, Watched


@pytest.fixture(scope="module")
def etcds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Etcds]:
    running = Etcds(tmp_path_factory.mktemp("etcd")).start()
    yield running
    running.clean_up()


@pytest.fixture(params=["etcd", "supervisor"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> StoreKind:
    return OfEtcd(request.getfixturevalue("etcds")) if request.param == "etcd" else OfSupervisor(tmp_path)


def run(store: StoreKind, scenario: Callable[[Asker, Connect], Awaitable[None]]) -> None:
    async def go() -> None:
        async with store.connected() as connect:
            await scenario(Asker(await connect()), connect)

    uvloop.run(go())  # as a node does


def test_a_change_is_made_only_if_its_compares_hold(store: StoreKind) -> None:
    async def scenario(ask: Asker, connect: Connect) -> None:
        made = await ask.txn([KeyCompare(b"cas/a", 0)], [KeyPut(b"cas/a", b"1"), KeyPut(b"cas/b", b"")])
        assert made.is_done
        refused = await ask.txn([KeyCompare(b"cas/a", 0)], [KeyPut(b"cas/a", b"2")])
        assert refused == Txn(False, made.revision)
        refused = await ask.txn([KeyCompare(b"cas/a", made.revision, False)], [KeyPut(b"cas/a", b"2")])
        assert not refused.is_done
        changed = await ask.txn(
            [KeyCompare(b"cas/a", made.revision), KeyCompare(b"cas/none", 7, False)],
            [KeyPut(b"cas/a", b"3"), KeyPut(b"cas/b", None)],
        )
        assert changed == Txn(True, made.revision + 1)
        found = await ask.list(b"cas/")
        assert found == Range(changed.revision, [KeyValue(b"cas/a", b"3", changed.revision, made.revision)])

    run(store, scenario)


def test_what_is_refused_is_told_in_words(store: StoreKind) -> None:
    async def scenario(ask: Asker, connect: Connect) -> None:
        many = await ask.txn([], [KeyPut(b"many/%d" % number, b"") for number in range(129)])
        assert isinstance(many, EtcdFault)
        assert "too many operations" in str(many)
        twice = await ask.txn([], [KeyPut(b"twice", b""), KeyPut(b"twice", None)])
        assert "duplicate key" in str(twice)
        leased = await ask.txn([], [KeyPut(b"leased", b"", 12345)])
        assert "lease not found" in str(leased)

    run(store, scenario)


def test_a_watch_tells_every_change_once_and_those_of_one_transaction_together(store: StoreKind) -> None:
    async def scenario(ask: Asker, connect: Connect) -> None:
        first = await ask.put(b"w/a", b"1")
        watched = Watched(ask.client, b"w/", first.revision)
        await ask.put(b"elsewhere", b"x")
        second = await ask.txn([], [KeyPut(b"w/a", None), KeyPut(b"w/b", b"2"), KeyPut(b"w/c", b"")])
        await watched.until(lambda it: len(it.entries) == 4)
        assert watched.entries == [(b"w/a", b"1"), (b"w/a", None), (b"w/b", b"2"), (b"w/c", b"")]
        (last,) = [entries for revision, entries in watched.told if revision == second.revision]
        together = [entry.key for entry in last if entry.mod_revision == second.revision]
        assert together == [b"w/a", b"w/b", b"w/c"]
        watched.end()
        await ask.put(b"w/d", b"")
        await ask.list(b"w/")
        assert len(watched.entries) == 4
        assert watched.faults == []

    run(store, scenario)


def test_many_watches_and_ten_thousand_keys_are_told_whole(store: StoreKind) -> None:
    async def scenario(ask: Asker, connect: Connect) -> None:
        begin = (await ask.list(b"bulk/")).revision
        watches = [Watched(ask.client, b"bulk/", begin + 1) for _ in range(3)]
        transactions = [
            ask.txn([], [KeyPut(b"bulk/%05d" % (number + each), b"v" * 140) for each in range(100)])
            for number in range(0, 10_000, 100)
        ]
        assert all(done.is_done for done in await asyncio.gather(*transactions))
        found = await ask.list(b"bulk/")
        expected = [b"bulk/%05d" % number for number in range(10_000)]
        assert [entry.key for entry in found.entries] == expected
        for watched in watches:
            await watched.until(lambda it: len(it.entries) == 10_000)
            assert sorted(key for key, _ in watched.entries) == expected
            assert [revision for revision, _ in watched.told] == sorted(revision for revision, _ in watched.told)

    run(store, scenario)


def test_a_lease_is_granted_renewed_and_revoked_with_its_keys(store: StoreKind) -> None:
    async def scenario(ask: Asker, connect: Connect) -> None:
        lease = await ask(ask.client.grant, 4)
        assert lease > 0
        await ask.txn([], [KeyPut(b"l/a", b"1", lease)])
        (entry,) = (await ask.list(b"l/")).entries
        assert entry.lease == lease
        assert await ask(ask.client.renew, lease) == 4
        assert await ask(ask.client.revoke, lease) is None
        assert (await ask.list(b"l/")).entries == []
        assert await ask(ask.client.renew, lease) == 0
        assert await ask(ask.client.revoke, lease) is None

    run(store, scenario)


def test_a_lease_that_nobody_renews_ends_and_the_watch_tells_it(store: StoreKind) -> None:
    async def scenario(ask: Asker, connect: Connect) -> None:
        lease = await ask(ask.client.grant, 1)
        done = await ask.txn([], [KeyPut(b"expiry/a", b"1", lease)])
        watched = Watched(ask.client, b"expiry/", done.revision + 1)
        await watched.until(lambda it: it.entries == [(b"expiry/a", None)])

    run(store, scenario)


def test_after_close_nobody_is_called(store: StoreKind) -> None:
    async def scenario(ask: Asker, connect: Connect) -> None:
        called: list[object] = []
        revision = (await ask.list(b"x/")).revision
        watched = Watched(ask.client, b"x/", revision)
        ask.client.list(b"x/", called.append)
        ask.client.close()
        ask.client.close()
        ask.client.list(b"x/", called.append)
        Watched(ask.client, b"x/", revision)
        other = Asker(await connect())
        await other.put(b"x/a", b"")
        other.client.close()
        assert (called, watched.told, watched.faults) == ([], [], [])

    run(store, scenario)
