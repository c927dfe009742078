"""Where the copies of a partition are, and which nodes there are to hold them."""

from typing import NamedTuple

NOBODY = -1
NO_EPOCH = -1

HostPort = tuple[str, int]


class Lost(NamedTuple):
    """An unclean election: records from `offset` on may be gone."""

    at_ms: int
    leader: int
    """Who was chosen."""
    offset: int
    why: str


class Placement(NamedTuple):
    """Of one partition, at one revision of the metadata."""

    leader: int
    """NOBODY: there is none at the moment."""
    incarnation: int
    """Which life of the leader: one that was started again leads anew, in another epoch."""
    epoch: int
    isr: tuple[int, ...]
    """The replicas that hold all that was committed. Any of them may lead."""
    replicas: tuple[int, ...]
    """Those that there are to be; the first one is preferred as leader."""
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    revision: int = 0
    """At which it was written last: what the next change compares."""
    lost: tuple[Lost, ...] = ()


NOWHERE = Placement(NOBODY, 0, 0, (), ())


class NodeInfo(NamedTuple):
    """A node that is alive, in one of its lives. Addresses are where others reach it."""

    node_id: int
    incarnation: int
    kafka: HostPort | None = None
    """None: the node itself knows best, by who asks."""
    rack: str | None = None
    peer: HostPort | None = None
    """Where other nodes connect; None: it is its own cluster."""
    http: HostPort | None = None
    grpc: HostPort | None = None
    directory: str = ""
    boot: str = ""
    """Of its machine: it changes when that is started again."""
    started_ms: int = 0
    version: str = ""
    formats: tuple[int, int] = (1, 1)
    """The lowest and highest format of metadata and commands that it speaks."""
    lease: int = 0
    """Whoever knows that this life is over revokes it."""
    listeners: tuple[tuple[str, HostPort], ...] = ()
    """Where Kafka clients reach it, by the name of the listener that they came through."""

    def kafka_of(self, listener: str) -> HostPort | None:
        """For clients of the listener with this name on another node. A node of an earlier version has one listener,
        and one without a name in common has no address for them."""
        return dict(self.listeners).get(listener) if self.listeners else self.kafka
