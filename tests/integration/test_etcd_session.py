"""The session of a node on real etcd, renewed by a thread: a busy loop keeps it, a stuck one does not."""

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from goqueue.cluster.etcd.client import EtcdClient
from goqueue.cluster.etcd.endpoints import EtcdOptions
from goqueue.cluster.etcd.port import EtcdFault
from goqueue.cluster.etcd.renewing import EtcdRenewals, ThreadRenewer, boot_time_s
from goqueue.cluster.etcd.versions import ask_versions, check_versions
from goqueue.cluster.session import Session
from goqueue.runtime.clock import LoopClock
from tests.integration.etcd_members import Etcds
from tools.etcd.server import ETCD

FAR_S = 60.0


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Etcds]:
    running = Etcds(tmp_path, 3).start()
    yield running
    running.clean_up()


class Held:
    """A session, and what becomes of it."""

    def __init__(self, options: EtcdOptions, ttl_s: int) -> None:
        self.client = EtcdClient(options)
        self.session = Session(LoopClock(), boot_time_s, ttl_s, ThreadRenewer(lambda: EtcdRenewals(options)))
        self.is_lost = asyncio.Event()
        self.session.on_lost = self.is_lost.set

    async def begin(self) -> int:
        granted: asyncio.Future[int | EtcdFault] = asyncio.get_running_loop().create_future()
        sent_s = boot_time_s()
        self.client.grant(self.session.ttl_s, granted.set_result)
        lease = await granted
        assert isinstance(lease, int), lease
        self.session.begin(lease, sent_s)
        return lease

    def close(self) -> None:
        self.session.end()
        self.client.close()


def run(scenario: Callable[[], object]) -> None:
    asyncio.run(scenario())  # type: ignore[arg-type]


def busy(seconds: float) -> None:
    """Pure Python in this thread, as a large collection or a replay would be."""
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        sum(range(1000))


def test_a_busy_loop_keeps_its_session(three: Etcds) -> None:
    async def scenario() -> None:
        held = Held(EtcdOptions(three.endpoints), 4)
        try:
            await held.begin()
            for _ in range(4):
                busy(1.5)
                assert held.session.is_valid()
                turn = asyncio.Event()
                asyncio.get_running_loop().call_later(0.01, turn.set)  # the loop is heard of between two of them
                await turn.wait()
            assert not held.is_lost.is_set()
        finally:
            held.close()

    run(scenario)


def test_a_stuck_loop_loses_its_session(three: Etcds) -> None:
    async def scenario() -> None:
        held = Held(EtcdOptions(three.endpoints), 2)
        try:
            await held.begin()
            held.session.serve()
            threading.Event().wait(6)
            assert not held.session.is_valid()
            async with asyncio.timeout(FAR_S):
                await held.is_lost.wait()
        finally:
            held.close()

    run(scenario)


def test_a_member_that_stands_still_costs_no_session(three: Etcds) -> None:
    async def scenario() -> None:
        held = Held(EtcdOptions(three.endpoints), 4)
        try:
            await held.begin()
            three.members[0].signal(signal.SIGSTOP)
            loop = asyncio.get_running_loop()
            end_s = loop.time() + 8
            done = asyncio.Event()
            loop.call_at(end_s, done.set)
            await done.wait()
            assert held.session.is_valid()
            assert not held.is_lost.is_set()
        finally:
            three.members[0].signal(signal.SIGCONT)
            held.close()

    run(scenario)


def test_every_member_is_asked_for_its_version_and_one_that_is_down_stops_nobody(three: Etcds) -> None:
    one = EtcdOptions((three.endpoints[0],))
    versions = ask_versions(one)
    assert versions == dict.fromkeys(three.endpoints, ETCD.version)
    check_versions(versions)
    three.members[2].signal(signal.SIGKILL)
    assert list(ask_versions(one)) == list(three.endpoints[:2])
    for member in three.members:
        member.clean_up()
    with pytest.raises(EtcdFault):
        ask_versions(one)
