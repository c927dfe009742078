"""Where the copies of a partition are to be: leaders evenly over the nodes, copies of one partition on as many racks as
there are, and the load of a node that dies on all the others.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple
from zlib import crc32

from goqueue.model.errors import GoQueueError
from goqueue.model.metadata import NodeValue
from goqueue.model.placements import NodeInfo, Placement

WANTED = "in"
"""Of a node that may be given copies; others drain or are out."""


class TooFewNodes(GoQueueError):
    """There are fewer nodes than a partition is to have copies, or fewer are alive than must be in sync."""


class Host(NamedTuple):
    """A node that may be given copies."""

    node_id: int
    rack: str | None = None


def hosts(members: Mapping[int, NodeValue], alive: Collection[int], copies: int) -> list[Host]:
    """Who may be given copies: of the nodes that belong to the cluster and are wanted, the living ones; all of them, if
    the living ones are too few."""
    wanted = [Host(node_id, members[node_id].rack) for node_id in sorted(members) if members[node_id].wanted == WANTED]
    living = [host for host in wanted if host.node_id in alive]
    return living if len(living) >= copies else wanted


def in_turns(nodes: Iterable[Host]) -> list[Host]:
    """One of each rack, then the next of each, so that neighbours are of different racks as far as there are such."""
    racks: dict[str, list[Host]] = {}
    for host in sorted(nodes):
        racks.setdefault(host.rack or "", []).append(host)
    turns = max(map(len, racks.values()), default=0)
    return [racks[rack][turn] for turn in range(turns) for rack in sorted(racks) if turn < len(racks[rack])]


def assign(topic_id: bytes, number: int, nodes: Sequence[Host], copies: int) -> tuple[int, ...]:
    """The copies of one partition, the preferred leader first. With each round over all nodes the followers of a leader
    are others, so that nobody alone inherits from it."""
    if not 1 <= copies <= len(nodes):
        raise TooFewNodes(f"{copies} copies of each partition, but there are {len(nodes)} nodes to have them")
    ring = in_turns(nodes)
    size = len(ring)
    place = crc32(topic_id) + number
    chosen = [ring[place % size]]
    shift = number // size % max(1, size - 1)
    others = [ring[(place + 1 + (shift + step) % (size - 1)) % size] for step in range(size - 1)]
    while len(chosen) < copies:
        racks = {host.rack for host in chosen}
        left = [host for host in others if host not in chosen]
        chosen.append(next((host for host in left if host.rack not in racks), left[0]))
    return tuple(host.node_id for host in chosen)


def grown(topic_id: bytes, number: int, nodes: Sequence[Host], copies: int, replicas: Sequence[int]) -> tuple[int, ...]:
    """More copies of a partition that has too few. Those that are there stay; the order is the one that it would have
    had if all `nodes` had been there from the start, so that leaders come out even."""
    order = assign(topic_id, number, nodes, len(nodes)) if nodes else ()
    lacks = max(0, copies - len(replicas))
    chosen = {*replicas, *[node_id for node_id in order if node_id not in replicas][:lacks]}
    known = [node_id for node_id in order if node_id in chosen]
    return (*known, *(node_id for node_id in replicas if node_id not in known))


def first_placement(replicas: Sequence[int], alive: Mapping[int, NodeInfo], minimum: int) -> Placement:
    """Of a new partition: the living copies are in sync, since there is nothing that they could lack."""
    isr = tuple(node_id for node_id in replicas if node_id in alive)
    if len(isr) < max(1, min(minimum, len(replicas))):
        raise TooFewNodes(f"of nodes {list(replicas)} fewer than {minimum} are alive (min.insync.replicas)")
    return Placement(isr[0], alive[isr[0]].incarnation, 0, isr, tuple(replicas))


def replaced(replicas: Sequence[int], leaving: int, nodes: Sequence[Host], load: Mapping[int, int]) -> tuple[int, ...]:
    """The copies without `leaving`, with another node in its place: of a rack that has none yet, if there is one, and
    of those the one with the fewest copies (`load`)."""
    kept = [node_id for node_id in replicas if node_id != leaving]
    rack_of = {host.node_id: host.rack for host in nodes}
    racks = {rack_of.get(node_id) for node_id in kept}
    left = [host for host in nodes if host.node_id not in replicas]
    if not left:
        raise TooFewNodes(f"no other node can take the copy of node {leaving}")
    new = min(left, key=lambda host: (host.rack in racks, load.get(host.node_id, 0), host.node_id))
    return tuple(new.node_id if node_id == leaving else node_id for node_id in replicas)
