"""A member's end of its connection to the store: the port that etcd is behind elsewhere. Nothing is repeated: whoever
asked knows whether that does harm. The store ends with the supervisor and the member with both, so nobody connects
again.
"""

import asyncio
import socket
from collections.abc import Callable, Sequence
from itertools import count
from typing import cast

from goqueue.cluster.etcd.port import (
    EtcdCompacted,
    EtcdFault,
    KeyCompare,
    KeyPut,
    OnFault,
    OnKeys,
    OnLease,
    OnRange,
    OnTxn,
    Range,
    Txn,
)
from goqueue.cluster.local.messages import (
    Alive,
    Answer,
    Asked,
    AskGrant,
    AskList,
    AskRenew,
    AskRevoke,
    AskTxn,
    AskWatch,
    EndWatch,
    Faulty,
    Frames,
    Keys,
    Leased,
    TxnDone,
    framed,
)

DEADLINE_S = 2.0
"""After which nobody waits for an answer. What was asked may still be done."""
ALIVE_S = 0.5
"""How often the store hears that the loop of this member runs."""
UNDER_WAY_MAX = 10_000
UNSENT_BYTES_MAX = 64 << 20
"""A store that reads nothing is asked nothing more: what nobody waits for any more is still on its way to it."""

OnAnswer = Callable[[Answer], None]


class LocalStoreClient(asyncio.Protocol):
    """`goqueue.cluster.etcd.port.Etcd`."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._frames = Frames(Answer)
        self._transport: asyncio.Transport | None = None
        self._numbers = count(1)
        self._waiting: dict[int, tuple[OnAnswer, asyncio.TimerHandle]] = {}
        self._watches: dict[int, tuple[OnKeys, OnFault]] = {}
        self._is_closed = False
        self._alive: asyncio.TimerHandle | None = None
        self.on_lost: Callable[[], None] = lambda: None
        """Called when the store has cut the connection: there is no other."""

    @classmethod
    async def connect(cls, sock: socket.socket) -> "LocalStoreClient":
        """One end of a pair of sockets; the supervisor has the other."""
        sock.setblocking(False)
        _, client = await asyncio.get_running_loop().create_unix_connection(cls, sock=sock)
        return client

    # -- the port

    def txn(self, compares: Sequence[KeyCompare], puts: Sequence[KeyPut], on_done: OnTxn) -> None:
        def answered(answer: Answer) -> None:
            on_done(Txn(answer.is_done, answer.revision) if isinstance(answer, TxnDone) else _fault(answer))

        self._ask(AskTxn(next(self._numbers), compares, puts), answered)

    def list(self, prefix: bytes, on_done: OnRange) -> None:
        def answered(answer: Answer) -> None:
            on_done(Range(answer.revision, answer.entries) if isinstance(answer, Keys) else _fault(answer))

        self._ask(AskList(next(self._numbers), prefix), answered)

    def watch(self, prefix: bytes, revision: int, on_keys: OnKeys, on_lost: OnFault) -> Callable[[], None]:
        number = next(self._numbers)
        if not self._is_closed:
            self._watches[number] = on_keys, on_lost
            self._send(AskWatch(number, prefix, revision))

        def end() -> None:
            if self._watches.pop(number, None) is not None:
                self._send(EndWatch(number))

        return end

    def grant(self, ttl_s: int, on_done: OnLease) -> None:
        self._ask(AskGrant(next(self._numbers), ttl_s), _leased(on_done))

    def revoke(self, lease: int, on_done: Callable[[EtcdFault | None], None]) -> None:
        def answered(answer: Answer) -> None:
            on_done(None if isinstance(answer, Leased) else _fault(answer))

        self._ask(AskRevoke(next(self._numbers), lease), answered)

    def renew(self, lease: int, on_done: OnLease) -> None:
        self._ask(AskRenew(next(self._numbers), lease), _leased(on_done))

    def close(self) -> None:
        self._is_closed = True
        for _, timer in self._waiting.values():
            timer.cancel()
        self._waiting.clear()
        self._watches.clear()
        if self._alive is not None:
            self._alive.cancel()
        if self._transport is not None:
            self._transport.close()

    # -- asking

    def _ask(self, asked: Asked, on_answer: OnAnswer) -> None:
        if self._is_closed:
            return
        number = asked.number
        words = self._why_not()
        if words:
            self._loop.call_soon(self._refuse, Faulty(number, words), on_answer)
            return
        timer = self._loop.call_later(DEADLINE_S, self._give_up, number)
        self._waiting[number] = on_answer, timer
        self._send(asked)

    def _why_not(self) -> str:
        if self._transport is None:
            return "the store has ended"
        is_full = self._transport.get_write_buffer_size() > UNSENT_BYTES_MAX
        return "too much is asked of the store at once" if is_full or len(self._waiting) >= UNDER_WAY_MAX else ""

    def _send(self, asked: Asked) -> None:
        if self._transport is not None:
            self._transport.write(framed(asked))

    def _say_alive(self) -> None:
        if self._transport is not None and not self._is_closed:
            self._send(Alive())
            self._alive = self._loop.call_later(ALIVE_S, self._say_alive)

    def _refuse(self, answer: Faulty, on_answer: OnAnswer) -> None:
        if not self._is_closed:
            on_answer(answer)

    def _give_up(self, number: int) -> None:
        on_answer, _ = self._waiting.pop(number)
        on_answer(Faulty(number, f"the store did not answer within {DEADLINE_S:g} s"))

    # -- being answered

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # of another class in uvloop
        self._say_alive()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  the shape of a protocol
        self._transport = None
        waiting, self._waiting = self._waiting, {}
        watches, self._watches = self._watches, {}
        for number, (on_answer, timer) in waiting.items():
            timer.cancel()
            on_answer(Faulty(number, "the connection to the store was lost"))
        for _, on_lost in watches.values():
            on_lost(EtcdFault("the connection to the store was lost"))
        if not self._is_closed:
            self.on_lost()

    def data_received(self, data: bytes) -> None:
        try:
            for answer in self._frames.feed(data):
                self._answered(answer)
        except EtcdFault:
            if self._transport is not None:
                self._transport.abort()

    def _answered(self, answer: Answer) -> None:
        waiting = self._waiting.pop(answer.number, None)
        if waiting is not None:
            on_answer, timer = waiting
            timer.cancel()
            on_answer(answer)
            return
        watch = self._watches.get(answer.number)
        if watch is None:
            return  # it was ended, or nobody waits any more
        on_keys, on_lost = watch
        if isinstance(answer, Keys):
            on_keys(answer.revision, answer.entries)
        elif isinstance(answer, Faulty):
            del self._watches[answer.number]
            on_lost(EtcdCompacted(answer.compacted) if answer.compacted else EtcdFault(answer.words))


def _leased(on_done: OnLease) -> OnAnswer:
    return lambda answer: on_done(answer.lease if isinstance(answer, Leased) else _fault(answer))


def _fault(answer: Answer) -> EtcdFault:
    return EtcdFault(answer.words if isinstance(answer, Faulty) else "the store gave another answer than was asked for")
