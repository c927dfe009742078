"""What tests of the rooms above storage share: a broker, or its parts, on a disk in memory and a clock by hand."""

from collections.abc import Callable
from typing import Any

from goqueue.machines.controller_commands import CreateTopic
from goqueue.model.topics import Topic
from goqueue.records.build import build_batch
from goqueue.replica.replica import Replica
from goqueue.storage.committer import Committer
from goqueue.testing import MemoryDisk, VirtualClock
from goqueue.testing.memory_node import MemoryNode

TOPIC_ID = b"0123456789abcdef"


class Parts(MemoryNode):
    """Replicas on a disk in memory. Nothing is synced until `commit`."""

    clock: VirtualClock

    def __init__(self, disk: MemoryDisk | None = None, clock: VirtualClock | None = None) -> None:
        clock = clock or VirtualClock()
        super().__init__(
            disk or MemoryDisk(), clock, Committer(lambda finish: finish(), lambda: int(clock.monotonic_s() * 1000))
        )

    def replica(self, topic: str = "orders", partition: int = 0, **overrides: str) -> Replica:
        options = {name.replace("_", "."): text for name, text in overrides.items()}
        replica = self.replicas.open(Topic(topic, TOPIC_ID, partition + 1, options), partition, self.clock.now_ms())
        assert replica is not None, self.replicas.failed
        return replica

    def commit(self) -> None:
        """What the commit thread does, and what comes of it."""
        while True:
            self.clock.run()
            if not self.committer.run_once():
                return


class TestBroker(Parts):
    """All of one node but its doors and its threads."""

    __test__ = False

    def __init__(self, disk: MemoryDisk | None = None, clock: VirtualClock | None = None) -> None:
        super().__init__(disk, clock)
        self.assemble()
        self.commit()

    def ask(self, submit: Callable[[Any, Callable[[Any], None]], None], command: Any) -> Any:
        """The reply to a command, which must not take more than a sync."""
        replies: list[Any] = []
        submit(command, replies.append)
        self.commit()
        (reply,) = replies
        return reply

    def create(self, name: str, partitions: int = 1, **overrides: str) -> Any:
        options = {key.replace("_", "."): text for key, text in overrides.items()}
        return self.ask(
            self.broker.topics.submit, CreateTopic(name, name.encode().ljust(16, b".")[:16], partitions, options)
        )

    def publish(self, topic: str, *values: bytes, partition: int = 0, **fields: Any) -> int:
        return self.broker.publisher.publish(topic, partition, data(*values, **fields))[1].base_offset

    def stop(self) -> None:
        self.close()
        self.clock.run()


def data(*values: bytes | None, key: bytes | None = None, timestamp: int = 1000, **fields: Any) -> memoryview:
    """One batch as a producer sends it."""
    return memoryview(build_batch([(timestamp, key, value, []) for value in values], **fields))
