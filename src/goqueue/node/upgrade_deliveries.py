"""A data directory of a version that kept deliveries in ledgers by group: they are read once and written as companions
of their partitions; options of groups go to the metadata.

Every step can be done again. While the old ledgers count, no companion does; a mark says when they count no more, and
they go last.
"""

from collections.abc import Sequence
from typing import Any

from goqueue.machines.controller import Controller
from goqueue.machines.controller_facts import STORED_FACTS
from goqueue.machines.deliveries.facts import DELIVERY_FACTS, OptionsStored
from goqueue.machines.deliveries.machine import Deliveries
from goqueue.machines.group_options import GroupOptionsStored
from goqueue.machines.machine import Fact
from goqueue.node.upgrade_logs import opened, remove
from goqueue.replica.companion_names import CompanionName
from goqueue.replica.replica import Replica
from goqueue.replica.replicas import Replicas
from goqueue.runtime.ledger import Ledger
from goqueue.storage.side_file import replace_durably
from goqueue.telemetry.logs import get_logger

DELIVERIES = "deliveries"
OLD_LOG = "@deliveries"
MOVED_NAME = "deliveries-moved"

events = get_logger("node")

Key = tuple[bytes, int]


class DeliveriesUpgrade:
    """`run` before any ledger but that of the metadata is opened."""

    def __init__(self, replicas: Replicas, metadata: Replica, now_ms: int) -> None:
        self._replicas = replicas
        self._directory = replicas.directory
        self._disk = replicas.directory.disk
        self._metadata = Ledger(metadata, "metadata", STORED_FACTS)
        self._now_ms = now_ms

    def run(self) -> None:
        """LogPoisoned: an old ledger cannot be opened."""
        numbers = self._directory.partitions_of(OLD_LOG)
        if not numbers:
            return
        if not self._disk.exists(MOVED_NAME):
            for name in self._replicas.companions.on_disk():
                if name.kind == DELIVERIES:  # of an attempt that a crash ended
                    remove(self._replicas, name.log)
            self._move(numbers)
            replace_durably(self._disk, MOVED_NAME, b"")
        remove(self._replicas, OLD_LOG)

    def _move(self, numbers: Sequence[int]) -> None:
        controller = Controller()
        self._metadata.replay(controller, self._now_ms)
        options: list[Fact] = []
        by_key: dict[Key, list[Fact]] = {}
        with opened(self._replicas, OLD_LOG, numbers, self._now_ms) as replicas:
            for replica in replicas.values():
                machine = Deliveries()
                Ledger(replica, DELIVERIES, DELIVERY_FACTS).replay(machine, self._now_ms)
                known = _topic_ids(machine)
                for fact in machine.facts():
                    if isinstance(fact, OptionsStored):
                        options.append(GroupOptionsStored(fact.group_id, fact.options))
                        continue
                    place: Any = fact.place  # type: ignore[attr-defined]  # all others have one
                    topic = controller.topics.get(place.topic)
                    if topic is not None and place.partition < topic.partitions and known.get(place) == topic.topic_id:
                        by_key.setdefault((topic.topic_id, place.partition), []).append(fact)
        for (topic_id, partition), facts in by_key.items():
            self._write(CompanionName(DELIVERIES, topic_id, partition), facts)
        if options:
            self._metadata.append_in_batches(options, self._now_ms)
            self._metadata.make_durable()
        events.info("deliveries moved to their partitions", partitions=len(by_key), groups_with_options=len(options))

    def _write(self, name: CompanionName, facts: Sequence[Fact]) -> None:
        with opened(self._replicas, name.log, [name.partition], self._now_ms, name.topic_id) as replicas:
            replica = replicas[name.partition]
            Ledger(replica, DELIVERIES, DELIVERY_FACTS).append_in_batches(facts, self._now_ms)
            replica.sync()


def _topic_ids(machine: Deliveries) -> dict[Any, bytes]:
    """By place."""
    return {
        (group_id, each.topic, each.partition): each.topic_id
        for group_id in machine.groups()
        for each in machine.state_of(group_id).places
    }
