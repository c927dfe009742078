"""The end of a listener of grpc's, which has no good one of its own: when its server is stopped, it answers a call that
has just come with CANCELLED, however much time it was given. Clients take that for their own doing, and do not try
again. Who loses the connection is told UNAVAILABLE, and its library connects again, to another node if it knows one. So
the sockets are closed first, past grpc.
"""

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

DESCRIPTORS = Path("/dev/fd")
"""Of this process. Where there is none, grpc's own end has to do."""


ANY_ADDRESS = {"0.0.0.0", "::"}  # noqa: S104  nobody listens there because of this
MAPPED = "::ffff:"
"""How sockets of IPv6 name addresses of IPv4, and grpc takes no others."""


def cut_off(host: str, port: int) -> None:
    """No more connections to it, and the end of those that are there. What was written to them still arrives."""
    hosts = {str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
    with suppress(FileNotFoundError):
        for number, each in _sockets(hosts, port):
            if _is_listening(each):
                # Closed under this number, which grpc will close once more: it must not be somebody else's by then.
                with socket.socket() as nothing:
                    os.dup2(nothing.fileno(), number, inheritable=False)
        for _, each in _sockets(hosts, port):
            with suppress(OSError):  # its client has left
                each.shutdown(socket.SHUT_RDWR)


def _sockets(hosts: set[str], port: int) -> Iterator[tuple[int, socket.socket]]:
    """All of this process that are bound to `port` of one of them, by their numbers. Other sockets may have the port of
    another address."""
    for number in sorted(int(each.name) for each in DESCRIPTORS.iterdir()):
        with suppress(OSError):  # closed meanwhile
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                with socket.socket(fileno=os.dup(number)) as found:
                    if found.family in (socket.AF_INET, socket.AF_INET6) and _is_at(hosts, port, found):
                        yield number, found


def _is_at(hosts: set[str], port: int, found: socket.socket) -> bool:
    address: tuple[str, int] = found.getsockname()[:2]
    return address[1] == port and (address[0].removeprefix(MAPPED) in hosts or not hosts.isdisjoint(ANY_ADDRESS))


def _is_listening(found: socket.socket) -> bool:
    return found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) != 0
