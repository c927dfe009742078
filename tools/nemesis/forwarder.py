"""Cuts and delays for those who may make no namespaces: every host is reached through a forwarder that knows who sends.

A host listens at one loopback address and is known by another, where the forwarder listens. Who has connected is found
by the socket: the process that holds its other end is a node, a member of etcd, or else a client. A cut stops the bytes
of one direction, in connections of either side; they flow on when it is healed, as TCP's would.
"""

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from random import SystemRandom

from tools.nemesis.processes import ETCD_PORTS, NODE_PORTS

_dice = SystemRandom()
CHUNK_BYTES = 1 << 16
DELAY_S = 0.3
CLIENTS = 0
LISTENING = "0A"


class Forwarder:
    def __init__(self, hosts: int, hosts_by_pid: Callable[[], Mapping[int, int]]) -> None:
        """`hosts_by_pid`: the processes that run now. All others are clients."""
        self._net = _dice.randrange(1, 255)
        self._hosts_by_pid = hosts_by_pid
        self._cuts: set[tuple[int, int]] = set()
        self._slow: set[int] = set()
        self._loop = asyncio.new_event_loop()
        self._changed = asyncio.Event()
        self._hosts = range(1, hosts + 1)
        self._tasks: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Server] = []
        self._thread = threading.Thread(target=self._loop.run_forever, name="forwarder", daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)

    def address(self, host: int) -> str:
        return f"127.{self._net}.7.{host}"

    def behind(self, host: int) -> str:
        return f"127.{self._net}.8.{host}"

    @property
    def clients(self) -> str:
        return self.address(CLIENTS)

    def prefix(self, host: int) -> list[str]:
        return []

    def cut(self, sender: int, addresses: Iterable[str]) -> None:
        self._cuts |= {(sender, int(address.rpartition(".")[2])) for address in addresses}

    @property
    def can_slow(self) -> bool:
        return True

    def slow(self, host: int) -> None:
        self._slow.add(host)

    def heal(self) -> None:
        self._cuts.clear()
        self._slow.clear()
        self._loop.call_soon_threadsafe(self._wake)

    def remove(self) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    # -- in the loop

    async def _listen(self) -> None:
        for host in self._hosts:
            for port in (*NODE_PORTS, *ETCD_PORTS):
                self._servers.append(await asyncio.start_server(self._accept(host, port), self.address(host), port))

    def _accept(self, host: int, port: int) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]:
        def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = self._loop.create_task(self._carry(host, port, reader, writer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        return accepted

    async def _carry(self, host: int, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        running = self._hosts_by_pid()
        owner = owner_of(writer.get_extra_info("peername"), running)
        sender = CLIENTS if owner is None else running[owner]
        try:
            await self._may_pass(sender, host)
            back_reader, back_writer = await asyncio.open_connection(self.behind(host), port)
        except OSError:
            writer.transport.abort()  # it is refused there, so it ends here
            return
        pumps = [
            asyncio.ensure_future(self._pump(sender, host, reader, back_writer)),
            asyncio.ensure_future(self._pump(host, sender, back_reader, writer)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            writer.transport.abort()
            back_writer.transport.abort()

    async def _pump(self, sender: int, receiver: int, reader: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(CHUNK_BYTES):
                await self._may_pass(sender, receiver)
                if sender in self._slow:
                    await asyncio.sleep(DELAY_S)
                to.write(data)
                await to.drain()
            await self._may_pass(sender, receiver)  # an end is news, too

    async def _may_pass(self, sender: int, receiver: int) -> None:
        while (sender, receiver) in self._cuts:
            await self._changed.wait()


def owner_of(address: tuple[str, int], pids: Iterable[int]) -> int | None:
    """Which of these processes holds the socket with this local address."""
    inode = _inode(*address)
    if inode is None:
        return None
    wanted = f"socket:[{inode}]"
    return next((pid for pid in pids if _holds(Path(f"/proc/{pid}"), wanted)), None)


def _inode(host: str, port: int) -> str | None:
    octets = [int(part) for part in host.split(".")]
    wanted = f"{''.join(f'{octet:02X}' for octet in reversed(octets))}:{port:04X}"
    for line in Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]:
        words = line.split()
        if words[1] == wanted and words[3] != LISTENING:
            return words[9]
    return None


def _holds(process: Path, wanted: str) -> bool:
    try:
        return any(_target(link) == wanted for link in (process / "fd").iterdir())
    except OSError:  # it is gone
        return False


def _target(link: Path) -> str:
    """Of a file that may be closed while others are looked at."""
    try:
        return link.readlink().name
    except OSError:
        return ""
