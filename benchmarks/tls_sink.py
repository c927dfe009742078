"""What TLS costs whoever receives and does nothing else: that part of a cost is the event loop's and OpenSSL's.

A client library decides how many records it makes of a request, and each of them is decrypted by a call of its own.
"""

import asyncio
import socket
import ssl
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness import ROOT
from goqueue.cli.bench.broker import stopping
from goqueue.cli.bench.process import Process
from tests.certificates import Authority, Pair

BYTES = 32 * 1024 * 1024
BUFFER_BYTES = 256 * 1024
"""As a connection of the node receives."""
KB = 1000


class TlsSink:
    """Sinks of their own, one for each measurement."""

    def __init__(self, directory: Path, host: str) -> None:
        self._authority = Authority(directory, "sinks")
        self._pair: Pair = self._authority.sign("sink", addresses=[host])
        self._host = host

    def cpu_us_per_kb(self, record_bytes: Sequence[int] | None) -> float:
        """`record_bytes`: of the records of one request, which is sent again and again; None: without TLS."""
        files = (str(self._pair.cert), str(self._pair.key)) if record_bytes else ()
        command = [sys.executable, "-m", "benchmarks.tls_sink", self._host, *files]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT)
        with stopping(process):
            assert process.stdout is not None
            port = int(process.stdout.readline())
            with socket.create_connection((self._host, port)) as connection:
                data = self._encrypted(connection, record_bytes) if record_bytes else bytes(BYTES)
                sink = Process(process.pid)
                before_s = sink.cpu_s()
                connection.sendall(data)
                assert process.stdout.readline()
                return (sink.cpu_s() - before_s) / (BYTES / KB) * 1e6

    def _encrypted(self, connection: socket.socket, record_bytes: Sequence[int]) -> bytes:
        """All that is sent: nobody waits for a client that encrypts."""
        context = ssl.create_default_context(cafile=str(self._authority.ca))
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = context.wrap_bio(incoming, outgoing, server_hostname=self._host)
        while True:
            try:
                client.do_handshake()
                break
            except ssl.SSLWantReadError:
                connection.sendall(outgoing.read())
                incoming.write(connection.recv(BUFFER_BYTES))
        sent = 0
        while sent < BYTES:
            for size in record_bytes:
                sent += client.write(bytes(size))
        return outgoing.read()


def serve(host: str, cert: str = "", key: str = "") -> None:
    """What the sink's process runs. Says its port, and then that all has come."""
    import uvloop

    uvloop.run(_serve(host, cert, key))


async def _serve(host: str, cert: str, key: str) -> None:
    context = None
    if cert:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
    loop = asyncio.get_running_loop()
    has_all = asyncio.Event()
    server = await loop.create_server(lambda: _Sink(has_all), host, 0, ssl=context)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await has_all.wait()
    sys.stdout.write("all\n")
    sys.stdout.flush()
    await loop.create_future()


class _Sink(asyncio.BufferedProtocol):
    def __init__(self, has_all: asyncio.Event) -> None:
        self._buffer = bytearray(BUFFER_BYTES)
        self._received = 0
        self._has_all = has_all

    def get_buffer(self, sizehint: int) -> bytearray:  # noqa: ARG002  asyncio's signature
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._received += nbytes
        if self._received >= BYTES:
            self._has_all.set()


if __name__ == "__main__":
    serve(*sys.argv[1:])
