"""Carries all bytes between hosts, as a process of its own: `python -m tools.nemesis.carrier NET HOSTS`. Beside the
clients of a run in one interpreter, each hop would wait for them.

Each line of its input is the state from then on: cuts, hosts that are slow, and who is who. It is answered when it is
in force. The end of its input is its end.
"""

import asyncio
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tools.nemesis.processes import ETCD_PORTS, NODE_PORTS

CHUNK_BYTES = 1 << 16
DELAY_S = 0.3
CLIENTS = 0
TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
"""Some clients, gRPC's among them, reach IPv4 through sockets of IPv6: the last bytes of such an address are IPv4's."""
IPV4_CHARS = len("0100007F:1F90")
LISTENING, NOBODYS = "0A", "0"
"""A state and an inode of /proc/net/tcp. A socket that its process has closed is nobody's."""
STATE_BYTES_MAX = 1 << 20


def address(net: int, host: int) -> str:
    """By which a host is known, and where bytes for it are taken."""
    return f"127.{net}.7.{host}"


def behind(net: int, host: int) -> str:
    """Where it listens."""
    return f"127.{net}.8.{host}"


class Carrier:
    def __init__(self, net: int, hosts: int) -> None:
        self._net = net
        self._hosts = range(1, hosts + 1)
        self._cuts: set[tuple[int, int]] = set()
        self._slow: set[int] = set()
        self._pids: dict[int, int] = {}
        self._owners = Owners(lambda: self._pids)
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Server] = []

    async def serve(self, orders: asyncio.StreamReader, say: Callable[[], None]) -> None:
        """`say`: that all is as it was told."""
        await self._listen()
        say()
        while line := await orders.readline():
            state = json.loads(line)
            self._cuts = {(sender, receiver) for sender, receiver in state["cuts"]}
            self._slow = set(state["slow"])
            self._pids = {int(pid): host for pid, host in state["pids"].items()}
            self._changed.set()
            self._changed = asyncio.Event()
            say()
        await self._close()

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _listen(self) -> None:
        for host in self._hosts:
            for port in (*NODE_PORTS, *ETCD_PORTS):
                made = partial(self._protocol, host, port)
                self._servers.append(await self._loop.create_server(made, address(self._net, host), port))

    def _protocol(self, host: int, port: int) -> asyncio.StreamReaderProtocol:
        def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            assert isinstance(reader, _Reader)
            connection = _Connection(host, port, reader, writer, self._loop.time())
            task = self._loop.create_task(self._carry(connection))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        return asyncio.StreamReaderProtocol(_Reader(loop=self._loop), accepted, loop=self._loop)

    async def _carry(self, one: "_Connection") -> None:
        """If it is refused there, it ends here."""
        try:
            with suppress(OSError):
                await self._may_pass(one, is_answer=False)
                await asyncio.sleep(0)  # an end that came meanwhile is seen first
                if not one.reader.is_over:
                    await self._connect(one)
        finally:
            one.writer.transport.abort()

    async def _connect(self, one: "_Connection") -> None:
        reader, writer = await asyncio.open_connection(behind(self._net, one.host), one.port)
        pumps = [
            asyncio.ensure_future(self._pump(one, one.reader, writer, is_answer=False)),
            asyncio.ensure_future(self._pump(one, reader, one.writer, is_answer=True)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            writer.transport.abort()

    async def _pump(
        self, one: "_Connection", reader: asyncio.StreamReader, to: asyncio.StreamWriter, *, is_answer: bool
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(CHUNK_BYTES):
                await self._may_pass(one, is_answer=is_answer)
                to.write(data)
                await to.drain()
            await self._may_pass(one, is_answer=is_answer)  # an end is news, too

    async def _may_pass(self, one: "_Connection", *, is_answer: bool) -> None:
        """Who has connected is asked only while it matters: it takes long to find out."""
        while self._cuts or self._slow:
            if one.client is None:
                one.client = await self._owners.host_of(one.writer.get_extra_info("peername"), one.accepted_s)
            sender, receiver = (one.host, one.client) if is_answer else (one.client, one.host)
            if (sender, receiver) not in self._cuts:
                if sender in self._slow:
                    await asyncio.sleep(DELAY_S)
                return
            await self._changed.wait()


class _Reader(asyncio.StreamReader):
    is_over = False
    """The other side has closed, or is gone; what it sent before may still be unread."""

    def feed_eof(self) -> None:
        self.is_over = True
        super().feed_eof()

    def set_exception(self, exc: Exception) -> None:
        self.is_over = True
        super().set_exception(exc)


@dataclass
class _Connection:
    host: int
    port: int
    reader: _Reader
    writer: asyncio.StreamWriter
    accepted_s: float
    client: int | None = None
    """Which host has connected, or CLIENTS; None: nobody has asked yet."""


class Owners:
    """Which host holds a socket. The kernel tells it of all sockets at once, and a cut makes many connect anew: all who
    wait share one look, or there would be no end of looking.
    """

    def __init__(self, hosts_by_pid: Callable[[], Mapping[int, int]]) -> None:
        self._hosts_by_pid = hosts_by_pid
        self._lock = asyncio.Lock()
        self._found: Mapping[str, int] = {}
        self._looked_s = -math.inf

    async def host_of(self, place: tuple[str, int], since_s: float) -> int:
        """Of the process that has this local address `since_s`. ConnectionAbortedError: nobody has it any more."""
        async with self._lock:
            if self._looked_s <= since_s:
                began_s = asyncio.get_running_loop().time()
                self._found = await asyncio.to_thread(_look, self._hosts_by_pid())
                self._looked_s = began_s
        host = self._found.get(_in_hex(*place))
        if host is None:
            raise ConnectionAbortedError("whoever connected has given up")
        return host


def _look(hosts_by_pid: Mapping[int, int]) -> dict[str, int]:
    """All local addresses of connections, in the kernel's words, with who holds them."""
    by_inode = {inode: host for pid, host in hosts_by_pid.items() for inode in _sockets(pid)}
    tables = [table for table in map(Path, TABLES) if table.exists()]
    return holders([line for table in tables for line in table.read_text("ascii").splitlines()[1:]], by_inode)


def holders(lines: Iterable[str], by_inode: Mapping[str, int]) -> dict[str, int]:
    held = [words for words in map(str.split, lines) if words[3] != LISTENING and words[9] != NOBODYS]
    return {words[1][-IPV4_CHARS:]: by_inode.get(words[9], CLIENTS) for words in held}


def _sockets(pid: int) -> Iterator[str]:
    """Inodes. Files may be closed, and the process may end, while this looks."""
    with suppress(OSError), os.scandir(f"/proc/{pid}/fd") as files:
        for file in files:
            with suppress(OSError):
                target = Path(file.path).readlink().name
                if target.startswith("socket:["):
                    yield target[8:-1]


def _in_hex(host: str, port: int) -> str:
    octets = [int(part) for part in host.split(".")]
    return f"{''.join(f'{octet:02X}' for octet in reversed(octets))}:{port:04X}"


async def main(net: int, hosts: int) -> None:
    orders = asyncio.StreamReader(limit=STATE_BYTES_MAX)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    await Carrier(net, hosts).serve(orders, lambda: print("ok", flush=True))


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:])))
