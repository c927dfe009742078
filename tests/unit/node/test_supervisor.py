"""A supervisor and members that do not do as they are told: real processes, which are no nodes."""

import asyncio
import errno
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from goqueue.cluster.etcd.port import Etcd, KeyPut
from goqueue.node.process import StartFailed
from goqueue.node.processes import child as children
from goqueue.node.processes import supervisor as supervisors
from goqueue.node.processes.child import Child
from goqueue.node.processes.member import MemberStart
from goqueue.node.processes.member_names import STORE
from goqueue.node.processes.supervisor import Supervisor
from goqueue.node.settings import Settings
from goqueue.node.values import Address, Switch
from goqueue.testing import MemoryDisk
from tests.unit.testing.loops import turn

DEAF = """
import os, signal
os.write(1, b'{"first_key": null}\\n')
signal.pause()
"""
STUCK = """
import asyncio, os, signal, socket, sys, threading
from goqueue.cluster.local.client import LocalStoreClient
from goqueue.node.processes import member

def where_it_is_stuck():
    signal.pause()

async def serve():
    await LocalStoreClient.connect(socket.socket(fileno=int(sys.argv[1])))
    member._read(int.from_bytes(member._read(member.LENGTH_BYTES), "big"))
    threading.Thread(target=member._listen, args=(asyncio.get_running_loop(), {}), daemon=True).start()
    os.write(1, b'{"first_key": null}\\n')
    where_it_is_stuck()

asyncio.run(serve())
"""
READY = """
import os, signal
os.write(1, b'{"first_key": null, "http": "127.0.0.1:8080", "kafka": "127.0.0.1:9092"}\\n')
signal.pause()
"""
SILENT = "import signal; signal.pause()"
BROKEN_OFF = """import os; os.write(1, b'{"first_k')"""
FAR_S = 60.0


class Member(Child):
    """`starting`, `started`: called before and after each."""

    starting: Callable[[], None] = staticmethod(lambda: None)
    started: Callable[[], None] = staticmethod(lambda: None)

    async def start(self) -> None:
        self.starting()
        await super().start()
        self.started()


@pytest.fixture
def signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path, drain_ms=0)


@pytest.fixture
def member(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Member]:
    monkeypatch.setattr(children, "COMMAND", DEAF)
    monkeypatch.setattr(supervisors, "RESTART_S_MIN", 0)
    made = Member(MemberStart(settings, settings.data_dir), cast(Etcd, None))
    yield made
    made.kill()


def test_a_member_that_does_not_stop_is_ended(
    settings: Settings, member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisors, "stop_s_max", lambda settings: 0)
    monkeypatch.setattr(supervisors, "LATE_S", 0)

    async def scenario() -> None:
        stop = asyncio.Event()
        running = asyncio.create_task(Supervisor(settings, [member]).run(stop))
        stop.set()
        async with asyncio.timeout(FAR_S):
            await running
        assert not member.is_running

    asyncio.run(scenario())


def test_a_member_that_the_system_has_no_room_for_is_tried_again(settings: Settings, member: Member) -> None:
    async def scenario() -> None:
        stop, is_back, starts = asyncio.Event(), asyncio.Event(), 0

        def no_room_once() -> None:
            nonlocal starts
            starts += 1
            if starts == 2:
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

        def started() -> None:
            if starts == 3:
                is_back.set()

        member.starting, member.started = no_room_once, started
        supervisor = Supervisor(settings, [member])
        supervisor._announce = member.kill  # type: ignore[method-assign]  # it ends when it has begun
        running = asyncio.create_task(supervisor.run(stop))
        waiting = asyncio.create_task(is_back.wait())
        async with asyncio.timeout(FAR_S):
            await asyncio.wait((running, waiting), return_when=asyncio.FIRST_COMPLETED)
        assert is_back.is_set()
        member.kill()
        stop.set()
        async with asyncio.timeout(FAR_S):
            await running

    asyncio.run(scenario())


def test_a_member_whose_loop_is_stuck_says_where_and_is_started_again(
    settings: Settings, member: Member, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(children, "COMMAND", STUCK)
    monkeypatch.setattr(children, "LOOK_S", 0.01)
    monkeypatch.setattr(children, "LAST_WORDS_S", FAR_S)

    async def scenario() -> None:
        stop, is_back, starts = asyncio.Event(), asyncio.Event(), 0

        def started() -> None:
            nonlocal starts
            starts += 1
            if starts == 2:
                is_back.set()

        member.started = started
        supervisor = Supervisor(settings, [member])
        supervisor._announce = lambda: None  # type: ignore[method-assign]  # it has no address
        running = asyncio.create_task(supervisor.run(stop))
        waiting = asyncio.create_task(is_back.wait())
        async with asyncio.timeout(FAR_S):
            await asyncio.wait((running, waiting), return_when=asyncio.FIRST_COMPLETED)
        assert is_back.is_set()
        member.kill()
        stop.set()
        async with asyncio.timeout(FAR_S):
            await running

    asyncio.run(scenario())
    assert "where_it_is_stuck" in capfd.readouterr().err


def test_a_member_that_is_heard_of_is_not_stuck(member: Member, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "LOOK_S", 0)

    async def scenario() -> None:
        waiting = asyncio.create_task(member.wait_stuck())
        for _ in range(20 * children.SILENT_LOOKS_MAX):
            member._heard()
            await turn()
        assert not waiting.done()
        async with asyncio.timeout(FAR_S):
            await waiting  # nobody hears of it any more

    asyncio.run(scenario())


def test_the_first_start_of_a_member_that_the_system_has_no_room_for_fails_in_words(
    settings: Settings, member: Member
) -> None:
    def no_room() -> None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    async def scenario() -> None:
        member.starting = no_room
        with pytest.raises(StartFailed, match="member 1 could not be started: Resource temporarily unavailable"):
            await Supervisor(settings, [member]).run(asyncio.Event())

    asyncio.run(scenario())


def test_a_member_that_is_on_its_way_back_is_told_where_it_will_be(
    settings: Settings, member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ready file is written anew when any member is back, also while another one is not yet."""
    monkeypatch.setattr(children, "COMMAND", READY)

    async def scenario() -> None:
        supervisor = Supervisor(settings, [member])
        await member.start()
        assert await member.wait_ready() == ""
        before = supervisor._facts()
        assert (before["http"], before["members"][0]["kafka"]) == ("127.0.0.1:8080", "127.0.0.1:9092")
        member.kill()
        await member.wait()
        monkeypatch.setattr(children, "COMMAND", SILENT)
        await member.start()
        now = supervisor._facts()
        assert now.pop("members") == [{**before.pop("members")[0], "pid": member.pid}]
        assert now == before
        member.kill()
        await member.wait()

    asyncio.run(scenario())


def test_a_member_that_ends_while_it_says_that_it_is_ready_has_ended(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "COMMAND", BROKEN_OFF)

    async def scenario() -> None:
        await member.start()
        async with asyncio.timeout(FAR_S):
            assert await member.wait_ready() == "exit code 0"

    asyncio.run(scenario())


def test_all_processes_end_when_the_store_has_failed(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, signals: None
) -> None:
    """Else none of them could ever come back, and nobody would see why."""
    disk, members = MemoryDisk(), list[Child]()

    class Changing(Child):
        async def start(self) -> None:
            await super().start()
            members.append(self)
            if self.number == 2:
                disk.faults.add("sync", errno.EIO, prefix=f"logs/{STORE}")  # once: that is enough
                self._store.txn([], [KeyPut(b"key", b"value")], lambda answer: None)

    monkeypatch.setattr(children, "COMMAND", READY)
    monkeypatch.setattr(supervisors, "Child", Changing)
    monkeypatch.setattr(supervisors, "RealDisk", lambda path: disk)
    anywhere = Address("127.0.0.1", 0)
    several = replace(settings, processes=2, dev=Switch.ON, kafka=anywhere, http=anywhere, grpc=anywhere)

    async def scenario() -> None:
        with pytest.raises(StartFailed, match=r"all processes have ended: .*could not sync.*; start it again"):
            async with asyncio.timeout(FAR_S):
                await supervisors._supervise(several)
        assert [each.is_running for each in members] == [False, False]

    asyncio.run(scenario())
