"""Cuts without rights: through a forwarder that knows who sends."""

import asyncio
import os
import socket
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from tools.nemesis.carrier import CLIENTS, Owners, holders
from tools.nemesis.forwarder import Forwarder

ME, OTHER = 1, 2
PORT = 9092
WAIT_S_MAX = 30.0


@pytest.fixture
def forwarder() -> Iterator[Forwarder]:
    made = Forwarder(2, lambda: {os.getpid(): ME})
    yield made
    made.remove()


@pytest.fixture
def ends(forwarder: Forwarder) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Of a connection from me to the other one."""
    with closing(socket.create_server((forwarder.behind(OTHER), PORT))) as server:
        server.settimeout(WAIT_S_MAX)
        with closing(socket.create_connection((forwarder.address(OTHER), PORT), WAIT_S_MAX)) as mine:
            theirs, _ = server.accept()
            theirs.settimeout(WAIT_S_MAX)
            with closing(theirs):
                yield mine, theirs


def test_a_socket_is_traced_to_the_process_that_holds_it(ends: tuple[socket.socket, socket.socket]) -> None:
    async def holder(running: dict[int, int]) -> int:
        return await Owners(lambda: running).host_of(ends[0].getsockname(), 0)

    assert asyncio.run(holder({1: OTHER, os.getpid(): ME})) == ME
    assert asyncio.run(holder({})) == CLIENTS


def test_a_socket_of_ipv6_that_reaches_ipv4_is_traced_too_and_a_closed_one_is_nobodys() -> None:
    rest = "0100007F:1F90 01 00000000:00000000 00:00000000 00000000 0 0"
    lines = [
        f"0: 0100007F:C350 {rest} 71 1",
        f"1: 0000000000000000FFFF00000200007F:C351 0000000000000000FFFF0000{rest} 72 1",
        f"2: 0100007F:C352 {rest} 0 1",
    ]
    assert holders(lines, {"72": OTHER}) == {"0100007F:C350": CLIENTS, "0200007F:C351": OTHER}


def test_all_who_ask_at_once_share_a_look_and_who_came_later_has_another(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    looks = []

    def running() -> dict[int, int]:
        looks.append(1)
        return {os.getpid(): ME}

    async def scenario() -> None:
        owners, address = Owners(running), ends[0].getsockname()
        now_s = asyncio.get_running_loop().time()
        assert await asyncio.gather(*(owners.host_of(address, now_s - 1) for _ in range(50))) == [ME] * 50
        assert len(looks) == 1
        assert await owners.host_of(address, now_s + 3600) == ME
        assert len(looks) == 2

    asyncio.run(scenario())


def test_bytes_go_both_ways(ends: tuple[socket.socket, socket.socket]) -> None:
    mine, theirs = ends
    mine.sendall(b"question")
    assert theirs.recv(100) == b"question"
    theirs.sendall(b"answer")
    assert mine.recv(100) == b"answer"


@pytest.mark.parametrize("cut", [ME, OTHER])
def test_a_cut_holds_up_one_way_until_it_is_healed(
    forwarder: Forwarder, ends: tuple[socket.socket, socket.socket], cut: int
) -> None:
    mine, theirs = ends
    silent, heard = (mine, theirs) if cut == ME else (theirs, mine)
    forwarder.cut(cut, [forwarder.address(OTHER if cut == ME else ME)])
    silent.sendall(b"held up")
    for _ in range(20):  # so often that what is not held up would surely be there
        heard.sendall(b"x")
        assert silent.recv(1) == b"x"
    heard.setblocking(False)
    with pytest.raises(BlockingIOError):
        heard.recv(100)
    heard.settimeout(WAIT_S_MAX)
    forwarder.heal()
    assert heard.recv(100) == b"held up"


def test_who_is_refused_behind_it_is_cut_off(forwarder: Forwarder) -> None:
    mine = socket.create_connection((forwarder.address(OTHER), PORT), WAIT_S_MAX)
    with closing(mine), suppress(ConnectionResetError):
        assert mine.recv(1) == b""


def test_who_has_given_up_during_a_cut_is_not_connected_when_it_is_healed(forwarder: Forwarder) -> None:
    """Clients connect again and again while they hear nothing: all of them at once would be too many."""
    forwarder.cut(ME, [forwarder.address(OTHER)])
    with closing(socket.create_server((forwarder.behind(OTHER), PORT))) as server:
        server.settimeout(WAIT_S_MAX)
        socket.create_connection((forwarder.address(OTHER), PORT), WAIT_S_MAX).close()
        with closing(socket.create_connection((forwarder.address(OTHER), PORT), WAIT_S_MAX)) as patient:
            patient.sendall(b"patient")
            forwarder.heal()
            theirs, _ = server.accept()
            with closing(theirs):
                theirs.settimeout(WAIT_S_MAX)
                assert theirs.recv(100) == b"patient"
