"""What comes in on a connection, cut into frames: small ones through one buffer, a large one into memory of its own."""

from collections.abc import Iterator
from struct import Struct
from typing import Final

from goqueue.client.errors import ConnectionLost

RECEIVE_BYTES = 64 * 1024
LENGTH_BYTES: Final = 4

_LENGTH = Struct(">i")


class FramesIn:
    __slots__ = ("_buffer", "_filled", "_frame", "_frame_bytes_max")

    def __init__(self, frame_bytes_max: int) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._buffer = memoryview(bytearray(RECEIVE_BYTES))
        self._filled = 0
        self._frame: bytearray | None = None
        """A frame that is larger than the buffer, and how much of it is there (`_filled`)."""

    def room(self) -> memoryview:
        """Where what comes next is to be put."""
        if self._frame is not None:
            return memoryview(self._frame)[self._filled :]
        return self._buffer[self._filled :]

    def take(self, nbytes: int) -> Iterator[memoryview]:
        """So many bytes have come: all frames that are whole now, without their lengths. Each is the taker's own.
        ConnectionLost: these are no frames."""
        self._filled += nbytes
        if self._frame is None:
            yield from self._small()
        elif self._filled == len(self._frame):
            frame, self._frame, self._filled = self._frame, None, 0
            yield memoryview(frame)

    def _small(self) -> Iterator[memoryview]:
        """Each is copied out: what it holds may be kept."""
        buffer, at, end = self._buffer, 0, self._filled
        while end - at >= LENGTH_BYTES:
            (size,) = _LENGTH.unpack_from(buffer, at)
            if not LENGTH_BYTES <= size <= self._frame_bytes_max:
                raise ConnectionLost(f"a frame of {size} bytes")
            start = at + LENGTH_BYTES
            if size <= end - start:
                at = start + size
                yield memoryview(bytes(buffer[start:at]))
            elif size > RECEIVE_BYTES - LENGTH_BYTES:
                self._frame = bytearray(size)
                self._frame[: end - start] = buffer[start:end]
                self._filled = end - start
                return
            else:
                break
        if at:
            rest = bytes(buffer[at:end])
            buffer[: len(rest)] = rest
            self._filled = len(rest)
