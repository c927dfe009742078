"""Cuts without rights: through a forwarder that knows who sends."""

import os
import socket
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from tools.nemesis.forwarder import Forwarder, owner_of

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
    assert owner_of(ends[0].getsockname(), [1, os.getpid()]) == os.getpid()
    assert owner_of(ends[0].getsockname(), []) is None


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
