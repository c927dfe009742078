"""Where an operation is at home in a cluster: any node takes it, and does it, passes it on, or asks all.

LOOK = resource.add(..., home=at("partition", "path.topic", "path.partition"))
"""

from enum import Enum
from typing import NamedTuple


class Way(Enum):
    HERE = "here"
    """Every node knows, or changes what all share."""
    PARTS = "parts"
    """The broker itself asks the leaders of partitions."""
    HOME = "home"
    """One node has it: the whole request goes there, and its answer comes back unchanged."""
    EVERYWHERE = "everywhere"
    """Each node has a part of it: all are asked, and their answers become one."""
    FIRST = "first"
    """One node has it, and nobody knows which: all are asked, one after the other, until one knows."""


class Home(NamedTuple):
    way: Way
    kind: str = ""
    """Of HOME: what it belongs to."""
    fields: tuple[str, ...] = ()
    """Where the request names that: a part (path, query, body) and a field of it."""
    otherwise: Way | None = None
    """Of HOME: the way, if the request does not name it."""
    others: str = ""
    """Of EVERYWHERE: the method by which others are asked, if it is another."""


HERE, IN_PARTS = Home(Way.HERE), Home(Way.PARTS)
EVERYWHERE, FIRST = Home(Way.EVERYWHERE), Home(Way.FIRST)

PARTITION, DEAD_LETTER, GROUP, TRANSACTION = "partition", "dead letter", "group", "transactional id"
SCHEMAS, NEW_SCHEDULE, QUEUE, NODE = "schemas", "new schedule", "queue", "node"


def at(kind: str, *fields: str, otherwise: Way | None = None) -> Home:
    return Home(Way.HOME, kind, fields, otherwise)
