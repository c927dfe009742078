"""Where the copies of a partition are, and which nodes there are to hold them."""

from typing import NamedTuple

NOBODY = -1


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


NOWHERE = Placement(NOBODY, 0, 0, (), ())


class NodeInfo(NamedTuple):
    """A node that is alive."""

    node_id: int
    incarnation: int
    kafka: tuple[str, int] | None = None
    """Where others reach its Kafka listener: host and port. None: the node itself knows best, by who asks."""
    rack: str | None = None
