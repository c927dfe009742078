"""HTTP/2 by hand, as far as it takes to misbehave: grpc's own client is too polite for that."""

import socket
import struct
from collections.abc import Iterator
from typing import NamedTuple

from tests.integration.process import DEADLINE_S

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS, PING, GOAWAY = 4, 6, 7
MAX_CONCURRENT_STREAMS = 3
ENHANCE_YOUR_CALM = 11


class Frame(NamedTuple):
    kind: int
    payload: bytes

    @property
    def settings(self) -> dict[int, int]:
        return dict(struct.iter_unpack(">HI", self.payload))

    @property
    def error(self) -> tuple[int, bytes]:
        """Of a GOAWAY: its code and its words."""
        return int.from_bytes(self.payload[4:8]), self.payload[8:]


class Http2:
    """One connection that has said hello."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), DEADLINE_S)
        self._file = self._socket.makefile("rb")
        self._socket.sendall(PREFACE)
        self.send(SETTINGS, b"")

    def __enter__(self) -> "Http2":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._socket.close()

    def send(self, kind: int, payload: bytes) -> None:
        self._socket.sendall(len(payload).to_bytes(3) + bytes((kind, 0, 0, 0, 0, 0)) + payload)

    def frames(self) -> Iterator[Frame]:
        """All that comes until the other side closes."""
        while head := self._file.read(9):
            yield Frame(head[3], self._file.read(int.from_bytes(head[:3])))

    def next_of(self, *kinds: int) -> Frame:
        return next(each for each in self.frames() if each.kind in kinds)
