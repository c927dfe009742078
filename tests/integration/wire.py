"""One bare connection: for what no client library would ever send."""

import socket
from struct import Struct
from types import TracebackType
from typing import TypeVar, cast

from goqueue.wire.kafka.frames import decode_response, request_frame
from goqueue.wire.kafka.notation import Message
from tests.integration.process import DEADLINE_S, Node

M = TypeVar("M", bound=Message)
SIZE = Struct(">i")
CLIENT_ID = "bare"


class Closed(Exception):
    """The node has closed the connection."""


class Wire:
    def __init__(self, node: Node) -> None:
        self._socket = socket.create_connection(node.endpoint, timeout=DEADLINE_S)
        self._next_id = 1

    def __enter__(self) -> "Wire":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def send_bytes(self, data: bytes) -> None:
        self._socket.sendall(data)

    def send_frame(self, frame: bytes) -> None:
        self.send_bytes(SIZE.pack(len(frame)) + frame)

    def send(self, request: Message, version: int) -> int:
        """Returns the correlation id that the answer will have."""
        number, self._next_id = self._next_id, self._next_id + 1
        parts = cast(list[bytes], request_frame(request, version, number, CLIENT_ID))
        self.send_bytes(b"".join(parts))
        return number

    def receive(self, response: type[M], version: int) -> tuple[int, M]:
        number, message, _ = decode_response(response, version, memoryview(self.receive_frame()))
        return number, message

    def call(self, request: Message, version: int, response: type[M]) -> M:
        number = self.send(request, version)
        answered, message = self.receive(response, version)
        assert answered == number
        return message

    def receive_frame(self) -> bytes:
        (size,) = SIZE.unpack(self._receive_bytes(SIZE.size))
        return self._receive_bytes(size)

    def _receive_bytes(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            try:
                piece = self._socket.recv(count - len(data))
            except ConnectionResetError:
                raise Closed from None
            if not piece:
                raise Closed
            data += piece
        return bytes(data)

    def wait_closed(self) -> bytes:
        """What still came before the node closed the connection; TimeoutError if it does not."""
        data = bytearray()
        try:
            while piece := self._socket.recv(65536):
                data += piece
        except ConnectionResetError:
            pass
        return bytes(data)
