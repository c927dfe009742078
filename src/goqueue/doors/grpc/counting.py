"""What is known of calls: those that are open, whose they are, and how the others ended."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from grpc import StatusCode, aio

from goqueue.telemetry.meters import Meters


class Counting:
    def __init__(self, meters: Meters) -> None:
        self._meters = meters
        self.requests = 0
        self.malformed = 0
        self.open: dict[str, int] = {}
        """By method."""
        self.peers: dict[str, int] = {}
        """Calls that are open, by connection. grpc does not tell of connections without one."""

    @contextmanager
    def call(self, method: str, context: Any) -> Iterator[None]:
        peer = context.peer()
        self.requests += 1
        self.open[method] = self.open.get(method, 0) + 1
        self.peers[peer] = self.peers.get(peer, 0) + 1
        code: StatusCode = StatusCode.OK
        try:
            yield
        except aio.AbortError:
            code = context.code()
            raise
        except asyncio.CancelledError:
            code = StatusCode.CANCELLED  # by the client, or by its deadline: only the client knows which
            raise
        finally:
            self._meters.called(method, code.name)
            self.open[method] -= 1
            self.peers[peer] -= 1
            if not self.peers[peer]:
                del self.peers[peer]
