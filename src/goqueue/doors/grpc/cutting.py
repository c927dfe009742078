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


def cut_off(port: int) -> None:
    """No more connections to `port`, and the end of those that are there. What was written to them still arrives."""
    with suppress(FileNotFoundError):
        for number, each in _sockets(port):
            if _is_listening(each):
                # Closed under this number, which grpc will close once more: it must not be somebody else's by then.
                with socket.socket() as nothing:
                    os.dup2(nothing.fileno(), number, inheritable=False)
        for _, each in _sockets(port):
            with suppress(OSError):  # its client has left
                each.shutdown(socket.SHUT_RDWR)


def _sockets(port: int) -> Iterator[tuple[int, socket.socket]]:
    """All of this process that are bound to it, by their numbers."""
    for number in sorted(int(each.name) for each in DESCRIPTORS.iterdir()):
        with suppress(OSError):  # closed meanwhile
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                with socket.socket(fileno=os.dup(number)) as found:
                    if found.family in (socket.AF_INET, socket.AF_INET6) and found.getsockname()[1] == port:
                        yield number, found


def _is_listening(found: socket.socket) -> bool:
    return found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) != 0
