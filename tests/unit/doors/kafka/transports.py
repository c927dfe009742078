"""A socket's stand-in: what was written, and whether reading goes on."""

import asyncio
from typing import Any


class FakeTransport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.writes = 0
        self.is_reading_now = True
        self.closed = False
        self.aborted = False
        self.unsent = 0
        """Bytes that the client has not taken yet."""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("10.0.0.1", 5555) if name == "peername" else default

    def write(self, data: Any) -> None:
        self.writes += 1
        self.written += data

    def writelines(self, list_of_data: Any) -> None:
        self.writes += 1
        for one in list_of_data:
            self.written += one

    def pause_reading(self) -> None:
        self.is_reading_now = False  # twice is fine, as with real ones

    def resume_reading(self) -> None:
        assert not self.is_reading_now
        self.is_reading_now = True

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = self.aborted = True

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def is_closing(self) -> bool:
        return self.closed


def feed(protocol: asyncio.BufferedProtocol, data: bytes | memoryview, chunk: int | None = None) -> None:
    """As the event loop does it: ask for room, fill some of it, tell."""
    view = memoryview(data)
    while view:
        buffer = protocol.get_buffer(-1)
        room = memoryview(buffer)
        count = min(len(room), len(view), chunk or len(view))
        room[:count] = view[:count]
        view = view[count:]
        protocol.buffer_updated(count)
