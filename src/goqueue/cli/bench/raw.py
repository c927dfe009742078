"""The raw operations that a broker is made of, on the same bytes: an echo through the same event loop, and a sync.

What a broker costs beyond these is its own.
"""

import asyncio
import os
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, cast

from goqueue.cli.bench.broker import start_python, stopping
from goqueue.cli.bench.errors import BenchFailed
from goqueue.cli.bench.process import MIB, Process

ECHO_BUFFER_BYTES = 256 * 1024
"""As a connection of the broker receives."""
ANSWER_S_MAX = 30
SYNC_FILE_BYTES = 64 * MIB


class EchoRun(NamedTuple):
    requests_per_s: float
    cpu_us_per_request: float


class Echo:
    """One connection to an echo process, which answers each `request_bytes` with `reply_bytes`."""

    def __init__(self, connection: socket.socket, process: Process, request_bytes: int, reply_bytes: int) -> None:
        self._connection = connection
        self._process = process
        self._request = bytes(request_bytes)
        self._reply_bytes = reply_bytes
        self._buffer = bytearray(max(reply_bytes, ECHO_BUFFER_BYTES))

    def round_trip_s(self) -> float:
        started = time.perf_counter()
        self._connection.sendall(self._request)
        self._receive(self._reply_bytes)
        return time.perf_counter() - started

    def run(self, requests: int, in_flight: int) -> EchoRun:
        """Send `requests`, never more than `in_flight` of them unanswered."""
        self.round_trip_s()
        cpu_s, started = self._process.cpu_s(), time.perf_counter()
        for number in range(requests):
            if number >= in_flight:
                self._receive(self._reply_bytes)
            self._connection.sendall(self._request)
        self._receive(self._reply_bytes * min(in_flight, requests))
        taken_s = time.perf_counter() - started
        return EchoRun(requests / taken_s, (self._process.cpu_s() - cpu_s) / requests * 1e6)

    def _receive(self, size: int) -> None:
        while size:
            received = self._connection.recv_into(self._buffer, min(size, len(self._buffer)))
            if not received:
                raise BenchFailed("the echo process ended")
            size -= received


@contextmanager
def echo(request_bytes: int, reply_bytes: int) -> Iterator[Echo]:
    process = start_python("goqueue.cli.bench.raw", "serve_echo", str(request_bytes), str(reply_bytes))
    with stopping(process):
        assert process.stdout is not None
        port = process.stdout.readline()
        if not port:
            raise BenchFailed("the echo process did not start")
        with socket.create_connection(("127.0.0.1", int(port)), timeout=ANSWER_S_MAX) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            yield Echo(connection, Process(process.pid), request_bytes, reply_bytes)


def serve_echo(request_bytes: str, reply_bytes: str) -> None:
    """What the echo's process runs, until its one client is gone."""
    import uvloop

    uvloop.run(_serve_echo(int(request_bytes), int(reply_bytes)))


async def _serve_echo(request_bytes: int, reply_bytes: int) -> None:
    loop = asyncio.get_running_loop()
    is_over = asyncio.Event()
    server = await loop.create_server(lambda: _EchoProtocol(request_bytes, reply_bytes, is_over), "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await is_over.wait()
    server.close()


class _EchoProtocol(asyncio.BufferedProtocol):
    def __init__(self, request_bytes: int, reply_bytes: int, is_over: asyncio.Event) -> None:
        self._buffer = bytearray(ECHO_BUFFER_BYTES)
        self._request_bytes = request_bytes
        self._reply = bytes(reply_bytes)
        self._is_over = is_over
        self._received = 0
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but its base class

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  asyncio's signature
        self._is_over.set()

    def get_buffer(self, sizehint: int) -> bytearray:  # noqa: ARG002  asyncio's signature
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        assert self._transport is not None
        self._received += nbytes
        while self._received >= self._request_bytes:
            self._received -= self._request_bytes
            self._transport.write(self._reply)


class SyncedFile:
    """Writes to a file that has its place on the disk already, as a segment of a log has, each followed by its sync."""

    def __init__(self, directory: Path, write_bytes: int, file_bytes: int = SYNC_FILE_BYTES) -> None:
        self._file = tempfile.TemporaryFile(dir=directory, buffering=0)  # noqa: SIM115  close() closes it
        os.posix_fallocate(self._file.fileno(), 0, file_bytes)
        os.fsync(self._file.fileno())
        self._data = bytes(write_bytes)
        self._file_bytes = file_bytes
        self._position = 0

    def write_s(self) -> float:
        if self._position + len(self._data) > self._file_bytes:
            self._position = 0
        fd = self._file.fileno()
        started = time.perf_counter()
        os.pwrite(fd, self._data, self._position)
        os.fdatasync(fd)
        self._position += len(self._data)
        return time.perf_counter() - started

    def close(self) -> None:
        self._file.close()
