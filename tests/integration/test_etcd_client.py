"""The thin client on real etcd: what the port promises, under the faults of processes and of versions."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest

from goqueue.cluster.etcd.client import UNDER_WAY_MAX, EtcdClient
from goqueue.cluster.etcd.endpoints import EtcdOptions
from goqueue.cluster.etcd.port import (
    EtcdCompacted,
    EtcdFault,
    KeyCompare,
    KeyPut,
    KeyValue,
    Range,
    Txn,
)
from tests.integration.etcd_members import Etcds

FAR_S = 60.0
PARTS_FROM = 1000
"""Revisions that etcd tells at once."""


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Etcds]:
    running = Etcds(tmp_path_factory.mktemp("etcd")).start()
    yield running
    running.clean_up()


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Etcds]:
    running = Etcds(tmp_path, 3).start()
    yield running
    running.clean_up()


class Asker:
    """The client with answers that can be waited for."""

    def __init__(self, client: EtcdClient) -> None:
        self.client = client

    async def __call__(self, ask: Callable[..., Any], *args: Any) -> Any:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        ask(*args, answer.set_result)
        return await asyncio.wait_for(answer, FAR_S)

    async def txn(self, compares: Sequence[KeyCompare], puts: Sequence[KeyPut]) -> Any:
        return await self(self.client.txn, compares, puts)

    async def put(self, key: bytes, value: bytes | None) -> Txn:
        done = await self.txn([], [KeyPut(key, value)])
        assert isinstance(done, Txn), done
        return done

    async def list(self, prefix: bytes) -> Any:
        return await self(self.client.list, prefix)


class Watched:
    def __init__(self, client: EtcdClient, prefix: bytes, revision: int) -> None:
        self.told: list[tuple[int, list[KeyValue]]] = []
        self.faults: list[EtcdFault] = []
        self._news = asyncio.Event()
        self.end = client.watch(prefix, revision, self._keys, self._lost)

    def _keys(self, revision: int, keys: Sequence[KeyValue]) -> None:
        self.told.append((revision, list(keys)))
        self._news.set()

    def _lost(self, fault: EtcdFault) -> None:
        self.faults.append(fault)
        self._news.set()

    @property
    def entries(self) -> list[tuple[bytes, bytes | None]]:
        return [(entry.key, entry.value) for _, entries in self.told for entry in entries]

    async def until(self, is_done: Callable[["Watched"], bool]) -> None:
        async with asyncio.timeout(FAR_S):
            while not is_done(self):
                self._news.clear()
                await self._news.wait()


def run(options: EtcdOptions, scenario: Callable[[Asker], Awaitable[None]]) -> None:
    async def go() -> None:
        client = EtcdClient(options)
        try:
            await scenario(Asker(client))
        finally:
            client.close()

    asyncio.run(go())


def test_a_change_is_made_only_if_its_compares_hold(etcd: Etcds) -> None:
    async def scenario(ask: Asker) -> None:
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

    run(EtcdOptions(etcd.endpoints), scenario)


def test_a_refusal_of_etcd_is_told_in_its_words(etcd: Etcds) -> None:
    async def scenario(ask: Asker) -> None:
        many = await ask.txn([], [KeyPut(b"many/%d" % number, b"") for number in range(129)])
        assert isinstance(many, EtcdFault)
        assert "too many operations" in str(many)
        twice = await ask.txn([], [KeyPut(b"twice", b""), KeyPut(b"twice", None)])
        assert "duplicate key" in str(twice)
        leased = await ask.txn([], [KeyPut(b"leased", b"", 12345)])
        assert "lease not found" in str(leased)

    run(EtcdOptions(etcd.endpoints), scenario)


def test_a_watch_tells_every_change_once_and_those_of_one_transaction_together(etcd: Etcds) -> None:
    async def scenario(ask: Asker) -> None:
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

    run(EtcdOptions(etcd.endpoints), scenario)


def test_many_watches_and_ten_thousand_keys_are_told_whole(etcd: Etcds) -> None:
    async def scenario(ask: Asker) -> None:
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

    run(EtcdOptions(etcd.endpoints), scenario)


def test_a_history_that_comes_in_parts_is_told_no_further_than_it_has_come(etcd: Etcds) -> None:
    async def scenario(ask: Asker) -> None:
        first = await ask.put(b"long/0", b"")
        await asyncio.gather(*(ask.put(b"long/%d" % number, b"") for number in range(1, PARTS_FROM + 100)))
        watched = Watched(ask.client, b"long/", first.revision)
        await watched.until(lambda it: len(it.entries) == PARTS_FROM + 100)
        keys = [entries for _, entries in watched.told if entries]
        assert [revision for revision, entries in watched.told if entries] == [each[-1].mod_revision for each in keys]

    run(EtcdOptions(etcd.endpoints), scenario)


def test_a_compacted_history_is_told_as_such(etcd: Etcds) -> None:
    async def scenario(ask: Asker) -> None:
        first = await ask.put(b"c/a", b"1")
        last = await ask.put(b"c/a", b"2")
        compact(etcd.endpoints[0], last.revision)
        watched = Watched(ask.client, b"c/", first.revision)
        await watched.until(lambda it: bool(it.faults))
        assert watched.told == []
        (fault,) = watched.faults
        assert isinstance(fault, EtcdCompacted)
        assert fault.revision == last.revision
        await (again := Watched(ask.client, b"c/", last.revision)).until(lambda it: it.entries == [(b"c/a", b"2")])
        assert again.faults == []

    run(EtcdOptions(etcd.endpoints), scenario)


def test_a_lease_is_granted_renewed_and_revoked_with_its_keys(etcd: Etcds) -> None:
    async def scenario(ask: Asker) -> None:
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

    run(EtcdOptions(etcd.endpoints), scenario)


def test_a_lease_that_nobody_renews_ends_and_the_watch_tells_it(etcd: Etcds) -> None:
    async def scenario(ask: Asker) -> None:
        lease = await ask(ask.client.grant, 1)
        done = await ask.txn([], [KeyPut(b"expiry/a", b"1", lease)])
        watched = Watched(ask.client, b"expiry/", done.revision + 1)
        await watched.until(lambda it: it.entries == [(b"expiry/a", None)])

    run(EtcdOptions(etcd.endpoints), scenario)


def test_no_more_than_sixteen_requests_are_under_way(etcd: Etcds) -> None:
    async def scenario(ask: Asker) -> None:
        before = len(ask.client._under_way)
        asked = [asyncio.ensure_future(ask.put(b"busy/%d" % number, b"")) for number in range(500)]
        most = 0
        while not all(each.done() for each in asked):
            most = max(most, len(ask.client._under_way))
            await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
            asked = [each for each in asked if not each.done()] or asked
        assert before == 0
        assert most == UNDER_WAY_MAX
        assert len((await ask.list(b"busy/")).entries) == 500

    run(EtcdOptions(etcd.endpoints), scenario)


def test_a_killed_member_is_left_for_another_one(three: Etcds) -> None:
    async def scenario(ask: Asker) -> None:
        first = await ask.put(b"k/a", b"1")
        watched = Watched(ask.client, b"k/", first.revision)
        await watched.until(lambda it: it.entries == [(b"k/a", b"1")])
        three.members[0].signal(signal.SIGKILL)
        await watched.until(lambda it: bool(it.faults))
        again = Watched(ask.client, b"k/", first.revision + 1)
        while not isinstance(done := await ask.txn([KeyCompare(b"k/b", 0)], [KeyPut(b"k/b", b"2")]), Txn):
            assert isinstance(done, EtcdFault)
        while not again.told:
            if again.faults:
                again = Watched(ask.client, b"k/", first.revision + 1)
            await again.until(lambda it: bool(it.told or it.faults))
        assert again.entries == [(b"k/b", b"2")]

    run(EtcdOptions(three.endpoints), scenario)


def test_a_member_that_stands_still_is_left_within_seconds(three: Etcds) -> None:
    async def scenario(ask: Asker) -> None:
        loop = asyncio.get_running_loop()
        first = await ask.put(b"s/a", b"1")
        watched = Watched(ask.client, b"s/", first.revision)
        await watched.until(lambda it: bool(it.told))
        three.members[0].signal(signal.SIGSTOP)
        stopped_s = loop.time()
        await watched.until(lambda it: bool(it.faults))  # it is asked whether it is there after 5 s of silence
        assert loop.time() - stopped_s < 15
        while isinstance(await ask.list(b"s/"), EtcdFault):
            assert loop.time() - stopped_s < 30

    try:
        run(EtcdOptions(three.endpoints), scenario)
    finally:
        three.members[0].signal(signal.SIGCONT)


def test_a_lost_answer_is_a_fault_and_the_write_is_done_at_most_once(three: Etcds) -> None:
    async def scenario(ask: Asker) -> None:
        made = await ask.put(b"once", b"0")
        for member in three.members:
            member.signal(signal.SIGSTOP)
        asked = asyncio.ensure_future(ask.txn([], [KeyPut(b"once", b"1")]))
        assert isinstance(await asked, EtcdFault)
        for member in three.members:
            member.signal(signal.SIGCONT)
        while not isinstance(found := await ask.list(b"once"), Range):
            assert isinstance(found, EtcdFault)
        assert found.entries[0].mod_revision in {made.revision, made.revision + 1}

    run(EtcdOptions(three.endpoints), scenario)


def test_after_close_nobody_is_called(etcd: Etcds) -> None:
    async def scenario(ask: Asker) -> None:
        called: list[object] = []
        revision = (await ask.list(b"x/")).revision
        watched = Watched(ask.client, b"x/", revision)
        ask.client.list(b"x/", called.append)
        ask.client.close()
        ask.client.close()
        ask.client.list(b"x/", called.append)
        Watched(ask.client, b"x/", revision)
        other = Asker(EtcdClient(EtcdOptions(etcd.endpoints)))
        await other.put(b"x/a", b"")
        other.client.close()
        assert (called, watched.told, watched.faults) == ([], [], [])

    run(EtcdOptions(etcd.endpoints), scenario)


def compact(url: str, revision: int) -> None:
    number, digits = revision, []
    while number:
        digits.append(number & 127 | (128 if number > 127 else 0))
        number >>= 7
    with grpc.insecure_channel(url.removeprefix("http://")) as channel:
        call: Any = channel.unary_unary("/etcdserverpb.KV/Compact")
        call(bytes([8, *digits]), timeout=FAR_S)
