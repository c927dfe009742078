"""The handle of one process on a virtual etcd. Answers belong to the process that asked: when that is over, nobody
hears them, and what it sent may still arrive.
"""

from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any, Protocol

from goqueue.cluster.etcd.port import (
    EtcdFault,
    KeyCompare,
    KeyPut,
    KeyValue,
    OnFault,
    OnKeys,
    OnLease,
    OnRange,
    OnTxn,
    Range,
    Txn,
)
from goqueue.testing.virtual_loop import current_life


class Server(Protocol):
    def send(self, asked: "Asked") -> None: ...

    def add_watch(self, watch: "Watch") -> None: ...

    def end_watch(self, watch: "Watch") -> None: ...

    def do_txn(self, compares: Sequence[KeyCompare], puts: Sequence[KeyPut]) -> Txn: ...

    def do_list(self, prefix: bytes) -> Range: ...

    def do_grant(self, ttl_s: int) -> int: ...

    def do_revoke(self, number: int) -> None: ...

    def do_renew(self, number: int) -> int: ...


class _Caller:
    """Runs a callback as the process that asked for it."""

    def __init__(self, client: "VirtualEtcdClient") -> None:
        self.host = client.host
        self._client = client
        self._context = copy_context()
        self._life = current_life()

    @property
    def is_over(self) -> bool:
        return self._client.is_closed or (self._life is not None and self._life.is_over)

    def call(self, call: Callable[..., object], *args: object) -> None:
        if self.is_over:
            return
        if self._life is None:
            call(*args)
        else:
            self._context.copy().run(self._life.run, call, args)


class Asked(_Caller):
    """A request: answered once, or given up."""

    def __init__(self, client: "VirtualEtcdClient", do: Callable[[], object], on_done: Callable[[Any], None]) -> None:
        super().__init__(client)
        self.do = do
        self._on_done: Callable[[Any], None] | None = on_done

    def finish(self, answer: object) -> None:
        on_done, self._on_done = self._on_done, None
        if on_done is not None:
            self.call(on_done, answer)

    def give_up(self) -> None:
        self.finish(EtcdFault("etcd did not answer in time"))


class Watch(_Caller):
    def __init__(
        self, client: "VirtualEtcdClient", prefix: bytes, revision: int, on_keys: OnKeys, on_lost: OnFault
    ) -> None:
        super().__init__(client)
        self.prefix = prefix
        self.revision = revision
        """All before it was told."""
        self.is_due = False
        self.tells_progress = False
        self.is_ended = False
        self._on_keys = on_keys
        self._on_lost = on_lost

    @property
    def is_over(self) -> bool:
        return self.is_ended or super().is_over

    def tell(self, revision: int, events: Sequence[KeyValue]) -> None:
        self.call(self._on_keys, revision, events)

    def lose(self, fault: EtcdFault) -> None:
        self.call(self._lost, fault)

    def _lost(self, fault: EtcdFault) -> None:
        self.is_ended = True
        self._on_lost(fault)


class VirtualEtcdClient:
    """`goqueue.cluster.etcd.port.Etcd`."""

    def __init__(self, server: Server, host: str) -> None:
        self.host = host
        self.is_closed = False
        self._server = server

    def txn(self, compares: Sequence[KeyCompare], puts: Sequence[KeyPut], on_done: OnTxn) -> None:
        compares, puts = tuple(compares), tuple(puts)
        self._ask(lambda: self._server.do_txn(compares, puts), on_done)

    def list(self, prefix: bytes, on_done: OnRange) -> None:
        self._ask(lambda: self._server.do_list(prefix), on_done)

    def watch(self, prefix: bytes, revision: int, on_keys: OnKeys, on_lost: OnFault) -> Callable[[], None]:
        watch = Watch(self, prefix, revision, on_keys, on_lost)
        if not self.is_closed:
            self._server.add_watch(watch)

        def end() -> None:
            watch.is_ended = True
            self._server.end_watch(watch)

        return end

    def grant(self, ttl_s: int, on_done: OnLease) -> None:
        self._ask(lambda: self._server.do_grant(ttl_s), on_done)

    def revoke(self, lease: int, on_done: Callable[[EtcdFault | None], None]) -> None:
        self._ask(lambda: self._server.do_revoke(lease), on_done)

    def renew(self, lease: int, on_done: OnLease) -> None:
        self._ask(lambda: self._server.do_renew(lease), on_done)

    def close(self) -> None:
        self.is_closed = True

    def _ask(self, do: Callable[[], object], on_done: Callable[[Any], None]) -> None:
        if not self.is_closed:
            self._server.send(Asked(self, do, on_done))
