"""A listening socket is closed and no client that has connected is reset."""

import errno
import select
import socket
from collections.abc import Iterator

import pytest

from goqueue.ports import last_connections
from goqueue.ports.last_connections import accept_last


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        made.setblocking(False)
        yield made


def test_all_that_have_connected_are_accepted(listening: socket.socket) -> None:
    clients = [socket.create_connection(listening.getsockname()) for _ in range(3)]
    found = list(accept_last(listening))
    listening.close()
    for client, (taken, address) in zip(clients, found, strict=True):
        assert address == client.getsockname()
        client.sendall(b"asked")
        assert taken.recv(10) == b"asked"
        taken.close()
        assert client.recv(10) == b""
        client.close()


def test_who_comes_later_is_refused_when_it_tries_again_and_never_connected(listening: socket.socket) -> None:
    with socket.create_connection(listening.getsockname()), socket.socket() as late:
        found = accept_last(listening)
        next(found)[0].close()
        late.setblocking(False)
        assert late.connect_ex(listening.getsockname()) == errno.EINPROGRESS
        assert list(found) == []
        listening.close()
        refused = select.poll()
        refused.register(late, select.POLLERR)
        assert refused.poll(30_000)
        assert late.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNREFUSED


class Flooded(socket.socket):
    """However many are accepted, one more is there. The first has gone again."""

    accepted = 0

    def accept(self) -> tuple[socket.socket, str]:
        self.accepted += 1
        if self.accepted == 1:
            raise BlockingIOError
        return self, "somebody"


def test_where_they_come_without_end_it_ends_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_connections, "TAKEN_MAX", 5)
    with Flooded() as listening, socket.socket() as client:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        client.connect(listening.getsockname())
        assert list(accept_last(listening)) == [(listening, "somebody")] * 4
