"""The place of a reply: connections answer in the order of the requests, whatever is ready first."""

from collections.abc import Callable, Sequence
from typing import Protocol

Buffer = bytes | bytearray | memoryview


class Sending(Protocol):
    def reply_ready(self) -> None: ...


class Reply:
    """The place of one reply, or of several in a row, in the order of its connection."""

    __slots__ = ("_connection", "buffers", "on_lost", "on_sent", "requests", "size")

    def __init__(self, connection: Sending, requests: int, size: int) -> None:
        self._connection = connection
        self.requests = requests
        self.size = size
        """Bytes of the requests that may be kept until they are answered."""
        self.buffers: Sequence[Buffer] | None = None
        self.on_lost: Callable[[], None] | None = None
        """What waits on behalf of this reply need wait no longer. It is forgotten when it is called and when the reply
        is sent: whatever waits knows its request and so this reply, and a cycle would be left to the collector."""

        self.on_sent: Callable[[], object] | None = None
        """Called when it is ready, once: the next request behind it waits for its turn."""

    def send(self, buffers: Sequence[Buffer]) -> None:
        """An empty sequence sends nothing (a request that wants no reply)."""
        self.buffers = buffers
        self.on_lost = None
        self._connection.reply_ready()
        if self.on_sent is not None:
            on_sent, self.on_sent = self.on_sent, None
            on_sent()

    def lose(self) -> None:
        """Nobody will take it."""
        on_lost, self.on_lost, self.on_sent = self.on_lost, None, None
        if on_lost is not None:
            on_lost()
