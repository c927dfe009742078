"""The supervisor's end of a member's connection to the store: questions are asked of the store, and answers sent."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

from goqueue.cluster.etcd.port import Etcd, EtcdCompacted, EtcdFault, KeyValue, Range, Txn
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
from goqueue.telemetry.logs import get_logger

UNSENT_BYTES_MAX = 256 << 20
"""A member that reads nothing for so long is cut off: it ends, and is started again."""

events = get_logger("store")


class StoreConnection(asyncio.Protocol):
    """What a member watches ends with its connection. Its leases end when its process has: see `revoke_all`."""

    def __init__(self, store: Etcd, who: str, on_alive: Callable[[], None] = lambda: None) -> None:
        """`on_alive`: called when the member says that its loop runs."""
        self._store = store
        self._who = who
        self._on_alive = on_alive
        self._frames = Frames(Asked)
        self._transport: asyncio.Transport | None = None
        self._ends: dict[int, Callable[[], None]] = {}
        """How to end each watch."""
        self._leases: dict[int, None] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # of another class in uvloop

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  the shape of a protocol
        self._transport = None
        for end in self._ends.values():
            end()
        self._ends.clear()

    def data_received(self, data: bytes) -> None:
        try:
            for asked in self._frames.feed(data):
                self._handle(asked)
        except EtcdFault as fault:
            events.error("connection of a member to the store is cut", member=self._who, reason=str(fault))
            self.close()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _handle(self, asked: Asked) -> None:
        number, store = asked.number, self._store
        match asked:
            case AskTxn():
                store.txn(asked.compares, asked.puts, partial(self._txn_done, number))
            case AskList():
                store.list(asked.prefix, partial(self._listed, number))
            case AskWatch():
                self._watch(asked)
            case EndWatch():
                if (end := self._ends.pop(number, None)) is not None:
                    end()
            case Alive():
                self._on_alive()
            case AskGrant():
                store.grant(asked.ttl_s, partial(self._granted, number))
            case AskRevoke():
                self._leases.pop(asked.lease, None)
                store.revoke(asked.lease, lambda fault: self._leased(number, 0 if fault is None else fault))
            case AskRenew():
                store.renew(asked.lease, partial(self._leased, number))

    def revoke_all(self) -> None:
        """The process is gone: nobody need wait until its leases end by themselves."""
        for lease in self._leases:
            self._store.revoke(lease, lambda fault: None)
        self._leases.clear()

    def _granted(self, number: int, answer: int | EtcdFault) -> None:
        if not isinstance(answer, EtcdFault):
            self._leases[answer] = None
        self._leased(number, answer)

    def _watch(self, asked: AskWatch) -> None:
        number = asked.number

        def told(revision: int, entries: Sequence[KeyValue]) -> None:
            self._send(Keys(number, revision, entries))

        def lost(fault: EtcdFault) -> None:
            self._ends.pop(number, None)
            self._send(Faulty(number, str(fault), fault.revision if isinstance(fault, EtcdCompacted) else 0))

        self._ends[number] = self._store.watch(asked.prefix, asked.revision, told, lost)

    # -- answers

    def _txn_done(self, number: int, answer: Txn | EtcdFault) -> None:
        self._send(Faulty(number, str(answer)) if isinstance(answer, EtcdFault) else TxnDone(number, *answer))

    def _listed(self, number: int, answer: Range | EtcdFault) -> None:
        self._send(Faulty(number, str(answer)) if isinstance(answer, EtcdFault) else Keys(number, *answer))

    def _leased(self, number: int, answer: int | EtcdFault) -> None:
        self._send(Faulty(number, str(answer)) if isinstance(answer, EtcdFault) else Leased(number, answer))

    def _send(self, answer: Answer) -> None:
        if self._transport is None:
            return
        self._transport.write(framed(answer))
        if self._transport.get_write_buffer_size() > UNSENT_BYTES_MAX:
            events.error("connection of a member to the store is cut: it does not read", member=self._who)
            self.close()
