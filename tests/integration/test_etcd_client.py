"""The thin client on real etcd: what the port promises, under the faults of processes and of versions."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator
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
    Range,
    Txn,
)
from tests.integration.etcd_members import Etcds
from tests.integration.store_port import FAR_S, Asker, Watched

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


def run(options: EtcdOptions, scenario: Callable[[Asker], Awaitable[None]]) -> None:
    async def go() -> None:
        client = EtcdClient(options)
        try:
            await scenario(Asker(client))
        finally:
            client.close()

    asyncio.run(go())


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


def test_no_more_than_sixteen_requests_are_under_way(etcd: Etcds) -> None:
    async def scenario(ask: Asker) -> None:
        client = ask.client
        assert isinstance(client, EtcdClient)
        before = len(client._under_way)
        asked = [asyncio.ensure_future(ask.put(b"busy/%d" % number, b"")) for number in range(500)]
        most = 0
        while not all(each.done() for each in asked):
            most = max(most, len(client._under_way))
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


def compact(url: str, revision: int) -> None:
    number, digits = revision, []
    while number:
        digits.append(number & 127 | (128 if number > 127 else 0))
        number >>= 7
    with grpc.insecure_channel(url.removeprefix("http://")) as channel:
        call: Any = channel.unary_unary("/etcdserverpb.KV/Compact")
        call(bytes([8, *digits]), timeout=FAR_S)
