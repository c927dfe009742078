"""One member as its supervisor sees it: a process, in as many lives as it takes."""

import asyncio
import json
import os
import signal
import socket
import sys
from contextlib import suppress
from typing import Any

from goqueue.cluster.etcd.port import Etcd
from goqueue.cluster.local.server import StoreConnection
from goqueue.node.processes.member import CERTIFICATES, STOP, STUCK, MemberStart

COMMAND = "import sys; from goqueue.node.processes.member import main; sys.exit(main())"
SOCKETS = 2
"""To the store, and to the store for renewals."""
LOOK_S = 1.0
SILENT_LOOKS_MAX = 15
"""A member whose loop was not heard of at so many looks is stuck. Looks are counted, and not seconds: a supervisor that
stood still itself has heard of nobody."""
LAST_WORDS_S = 1.0
"""A stuck member has so long to say where it is stuck."""


class Child:
    def __init__(self, start: MemberStart, store: Etcd) -> None:
        self.start_with = start
        self.number = start.settings.node_id
        self.facts: dict[str, Any] = {}
        """What it told when it was last ready. Its addresses are the same in all its lives."""
        self._store = store
        self._process: asyncio.subprocess.Process | None = None
        self._connections: list[StoreConnection] = []
        self._is_heard = True

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """OSError: the system has no room for it."""
        sockets: list[socket.socket] = []
        try:
            while len(sockets) < SOCKETS:
                sockets.append(await self._connect())
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-c", COMMAND),
                *(str(each.fileno()) for each in sockets),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                pass_fds=[each.fileno() for each in sockets],
                # In a session of its own: Ctrl+C is for the supervisor, which then ends all in order.
                start_new_session=True,
            )
        finally:
            for each in sockets:
                each.close()
        self._write(self.start_with.encode())

    async def _connect(self) -> socket.socket:
        """The member's end of a connection to the store."""
        here, there = socket.socketpair()
        here.setblocking(False)
        connection = StoreConnection(self._store, str(self.number), self._heard)
        await asyncio.get_running_loop().create_unix_connection(lambda: connection, sock=here)
        self._connections.append(connection)
        return there

    def _heard(self) -> None:
        self._is_heard = True

    async def wait_ready(self) -> str:
        """Until it serves; else why it does not, in its own words or by how it ended."""
        assert self._process is not None
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line.endswith(b"\n"):  # it ended before it had said all of it
            return await self.wait()
        facts = json.loads(line)
        if "failed" in facts:
            await self.wait()
            return str(facts["failed"])
        self.facts = facts
        return ""

    async def wait(self) -> str:
        """How it ended. What it held in the store is free then."""
        assert self._process is not None
        code = await self._process.wait()
        for connection in self._connections:
            connection.revoke_all()
            connection.close()
        self._connections.clear()
        return f"signal {-code} ({signal.Signals(-code).name})" if code < 0 else f"exit code {code}"

    async def wait_stuck(self) -> None:
        """Until its loop does not run any more; for one that serves. While it opens its logs, nobody hears of it."""
        self._is_heard, silent = True, 0
        while silent < SILENT_LOOKS_MAX:
            silent = 0 if self._is_heard else silent + 1
            self._is_heard = False
            await asyncio.sleep(LOOK_S)

    async def end_stuck(self) -> None:
        """It says where it is stuck, if any of its threads can. One that was stopped (SIGSTOP) cannot."""
        self._write(STUCK)
        await asyncio.sleep(LAST_WORDS_S)
        self.kill()

    def stop(self) -> None:
        """In order. The signal itself may have come to it already, from whoever stops the whole service."""
        self._write(STOP)

    def look_at_certificates(self) -> None:
        self._write(CERTIFICATES)

    def kill(self) -> None:
        if self.is_running:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def _write(self, data: bytes) -> None:
        if self.is_running:
            assert self._process is not None
            assert self._process.stdin is not None
            with suppress(BrokenPipeError, ConnectionResetError, RuntimeError):
                self._process.stdin.write(data)
