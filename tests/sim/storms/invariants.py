"""What has to be so when a storm is over: all is led and in sync, copies are the same, and a follower knows of its
ledgers what they say.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from goqueue.model.topics import Topic
from goqueue.replica.replica import Replica
from goqueue.runtime.keeping import Keeping
from goqueue.runtime.ledger import Ledger, Reading
from goqueue.testing.simulated_node import SimulatedNode
from goqueue.testing.simulation import Simulation
from goqueue.testing.virtual_loop import let_pass

SETTLED_S_MAX = 30


async def settled(sim: Simulation) -> None:
    """Within half a minute everything is led, and in sync."""
    for _ in range(SETTLED_S_MAX * 10):
        if not unsettled(sim):
            return
        await let_pass(0.1)
    raise AssertionError(f"not settled {SETTLED_S_MAX} s after the trouble: {unsettled(sim)[:6]}")


def unsettled(sim: Simulation) -> list[str]:
    found = []
    for node in sim.nodes:
        image = node.broker.topics.image
        topics: list[Topic] = [*image.topics.values(), *image.ledgers.values()]
        if len(image.nodes) < len(sim.nodes):
            found.append(f"{node.name} knows nodes {sorted(image.nodes)}")
        for topic in topics:
            for number, one in enumerate(topic.placements):
                is_led = image.leader_of(topic.name, number) is not None
                if not is_led or sorted(one.isr) != sorted(one.replicas):
                    found.append(f"{node.name}: {topic.name}/{number} {one}")
        found += [f"{node.name}: {name} lags by {lag}" for name, lag in _lags(node) if lag]
    return found


def _lags(node: SimulatedNode) -> Iterator[tuple[str, int]]:
    for keeping in _keepings(node):
        yield from ((each.name, each.lag) for each in keeping.standbys.values())


def check_copies(sim: Simulation) -> None:
    """Byte for byte, below the watermarks of all of them; ledgers are compacted by each node for itself."""
    image = sim.nodes[0].broker.topics.image
    for topic in image.topics.values():
        for number in range(topic.partitions):
            held = [each for node in sim.nodes if (each := node.replicas.get(topic.name, number)) is not None]
            up_to = min(each.high_watermark for each in held)
            logs = {node_bytes(each, up_to) for each in held}
            assert len(logs) == 1, f"copies of {topic.name}/{number} differ below {up_to}"


def node_bytes(replica: Replica, up_to: int) -> bytes:
    batches = (batch for batch in replica.batches_from(replica.start_offset) if batch.next_offset <= up_to)
    return b"".join(bytes(batch.data) for batch in batches)


def check_standbys(sim: Simulation) -> None:
    """The machine of a follower is the one that its log gives, read from the start."""
    for node in sim.nodes:
        for keeping in _keepings(node):
            for key, standby in keeping.standbys.items():
                known, replica = standby.peek(), standby._replica
                assert known is not None, f"{node.name}: {standby.name} was not built"
                made = keeping.kept.make_machine(key, replica)
                audit = Ledger(replica, "audit", keeping.kept.facts)
                for _ in audit.read_on(made, Reading(standby._reading.position)):
                    pass
                assert _state(known) == _state(made), f"{node.name}: {standby.name} knows something else than its log"


def _keepings(node: SimulatedNode) -> list[Keeping[Any, Any]]:
    """What a node has in memory of its ledgers: nothing else looks at all of it."""
    inside: Any = node._node
    return list(inside._assembly._state.roles._all())


def _state(machine: Any) -> list[bytes]:
    return sorted(msgspec.msgpack.encode(fact) for fact in machine.facts())
