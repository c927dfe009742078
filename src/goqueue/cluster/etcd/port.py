"""What a node asks of etcd, as a port: the real client is behind it, and in a simulation a virtual etcd. Nothing is
repeated here: whoever asked knows whether that does harm.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from goqueue.model.errors import GoQueueError


class EtcdFault(GoQueueError):
    """No answer, or not the one that was asked for. A write may have been done or not: read before it is decided anew,
    and mind that a request may still arrive."""

    retriable = True


class EtcdCompacted(EtcdFault):
    """Changes of this revision are not kept any more: list anew, and find what is gone by comparing."""

    def __init__(self, revision: int) -> None:
        super().__init__(f"etcd has compacted its history up to revision {revision}")
        self.revision = revision


class KeyCompare(NamedTuple):
    key: bytes
    revision: int
    """The mod revision of the key; 0: there is no such key."""
    is_equal: bool = True
    """False: it must be another one."""


class KeyPut(NamedTuple):
    key: bytes
    value: bytes | None
    """None: delete the key."""
    lease: int = 0


class KeyValue(NamedTuple):
    """As it stands, or as it was deleted."""

    key: bytes
    value: bytes | None
    """None: it was deleted."""
    mod_revision: int
    create_revision: int
    lease: int = 0


class Txn(NamedTuple):
    is_done: bool
    """False: a compare did not hold, and nothing was changed."""
    revision: int


class Range(NamedTuple):
    """A linearizable read at one revision."""

    revision: int
    entries: Sequence[KeyValue]


OnTxn = Callable[[Txn | EtcdFault], None]
OnRange = Callable[[Range | EtcdFault], None]
OnLease = Callable[[int | EtcdFault], None]
OnKeys = Callable[[int, Sequence[KeyValue]], None]
"""All changes up to this revision: those of one revision are never in two calls. Without keys it says only that
nothing has changed so far."""
OnFault = Callable[[EtcdFault], None]


class Etcd(Protocol):
    """Callbacks are called in the thread that asked, never from within the call itself."""

    def txn(self, compares: Sequence[KeyCompare], puts: Sequence[KeyPut], on_done: OnTxn) -> None: ...

    def list(self, prefix: bytes, on_done: OnRange) -> None: ...

    def watch(self, prefix: bytes, revision: int, on_keys: OnKeys, on_lost: OnFault) -> Callable[[], None]:
        """Every change from `revision` on. `on_lost`: it has ended; EtcdCompacted: list anew, else watch from behind
        the last revision that was told. Returns what ends it, after which nobody is called."""

    def grant(self, ttl_s: int, on_done: OnLease) -> None:
        """A new lease, by its number."""

    def revoke(self, lease: int, on_done: Callable[[EtcdFault | None], None]) -> None:
        """End it, with all its keys. That it was over already is no fault."""

    def renew(self, lease: int, on_done: OnLease) -> None:
        """Told: for how many seconds it was renewed; 0: it is over."""

    def close(self) -> None:
        """Nobody is called after this."""
