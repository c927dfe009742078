"""The broker that is asked what any of them can answer: who leads what, and who coordinates whom. It may be cut off
from those who know better, and then another one is asked.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence

from goqueue.client.connection import Connection
from goqueue.client.errors import ClientError, ConnectionLost, TimedOut
from goqueue.ports.dice import Dice

BEHIND_S = 1.0
"""For how long it may name no leader, or one that does not serve, until another one is asked."""


class Contact:
    def __init__(self, connect: Callable[[str], Awaitable[Connection]], servers: Sequence[str], dice: Dice) -> None:
        """`servers`: those that are known before any broker has told of others."""
        self._connect = connect
        self._servers = servers
        self._dice = dice
        self._connection: Connection | None = None
        self._has_told = False
        self._suspects: dict[int | str, float] = {}
        """Nodes and topics: since when."""
        self._lock = asyncio.Lock()
        self.address = ""
        """Of the one that was reached last."""

    async def connection(self, brokers: Collection[str]) -> Connection:
        """To the same one as before, or else to one of these addresses. ConnectionLost or TimedOut: none is reached."""
        async with self._lock:
            if self._connection is not None and self._connection.is_open:
                return self._connection
            addresses = list(dict.fromkeys([*brokers, *self._servers]))
            self._dice.shuffle(addresses)
            # Another one than last time. A server that brokers do not tell of any more may be a machine that is gone:
            # a dial to it waits for its time-out.
            addresses.sort(key=lambda address: (address == self.address, address not in brokers))
            problem: ClientError = ConnectionLost("no server is known")
            for address in addresses:
                try:
                    connection = await self._connect(address)
                except (ConnectionLost, TimedOut) as error:
                    problem = error
                else:
                    self._connection, self._has_told, self.address = connection, False, address
                    return connection
            raise problem

    def told(self) -> None:
        """It has answered."""
        self._has_told = True

    def doubt(self, brokers: Collection[str]) -> None:
        """What it told has led to nothing: ask another one next. One that has told nothing yet is waited for: many
        partitions may be refused one after the other, and each would cut off the answer that they all wait for."""
        if self._has_told:
            self.leave(brokers)

    def suspect(self, what: int | str, now_s: float, brokers: Collection[str]) -> bool:
        """Of a node or a topic it tells what may be out of date. True: that has lasted, so that it is doubted now."""
        if now_s - self._suspects.setdefault(what, now_s) < BEHIND_S:
            return False
        self._suspects[what] = now_s
        self.doubt(brokers)
        return True

    def trust(self, what: int | str) -> None:
        self._suspects.pop(what, None)

    def leave(self, brokers: Collection[str]) -> None:
        """Ask another one next, if there is one."""
        if self._connection is None or not any(one != self.address for one in (*brokers, *self._servers)):
            return
        connection, self._connection = self._connection, None
        connection.abort(ConnectionLost("another broker is asked"))

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
