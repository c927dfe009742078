"""Closing a listening socket without losing a client.

Linux resets connections that it has established and that nobody has accepted when the socket is closed. Their clients
may have sent a request already, and cannot know whether it was done. To accept all of them first is not enough: one
more comes between the last accept and the close.
"""

import ctypes
import select
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from struct import Struct
from typing import Any

HANDSHAKE_MS = 2
"""For who has sent its SYN before, and was not connected yet. The event loop stands still for as long."""
TAKEN_MAX = 4096
"""More than the system keeps waiting. Where new ones cannot be dropped, they could come for ever."""
_ATTACH_FILTER = 26
"""SO_ATTACH_FILTER, which Python does not name."""
_INSTRUCTION = Struct("HBBI")
_PROGRAM = Struct("HP")
_NO_NEW = b"".join(
    _INSTRUCTION.pack(*each)
    for each in (
        (0x30, 0, 0, 13),  # load the byte of the TCP header that has the flags
        (0x54, 0, 0, 0x12),  # of SYN and ACK
        (0x15, 0, 1, 0x02),  # SYN alone?
        (0x06, 0, 0, 0),  # then drop the packet
        (0x06, 0, 0, 0xFFFF_FFFF),  # else keep it
    )
)


def accept_last(listening: socket.socket) -> Iterator[tuple[socket.socket, Any]]:
    """Everybody who has connected, with the address. Close the socket right after it: who connects from here on hears
    nothing, and is refused when it tries again."""
    if sys.platform == "linux":
        _drop_new(listening)
    waiting = select.poll()  # `select` knows no more than 1,024 files
    waiting.register(listening, select.POLLIN)
    for _ in range(TAKEN_MAX):
        if not waiting.poll(HANDSHAKE_MS):
            return
        try:
            yield listening.accept()
        except (BlockingIOError, ConnectionAbortedError):  # it has gone again
            continue
        except OSError:  # no more files may be open
            return


def _drop_new(listening: socket.socket) -> None:
    code = ctypes.create_string_buffer(_NO_NEW, len(_NO_NEW))
    program = _PROGRAM.pack(len(_NO_NEW) // _INSTRUCTION.size, ctypes.addressof(code))
    with suppress(OSError):  # a system that has no such filters, as some containers
        listening.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, program)
