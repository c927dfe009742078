"""The copies that this node keeps, by topic and partition, each opened with its topic's options."""

from collections.abc import Callable, Iterator

from goqueue.model.errors import GoQueueError
from goqueue.model.topics import Topic, TopicOptions
from goqueue.replica.replica import Defer, Replica
from goqueue.storage.data_directory import DataDirectory
from goqueue.storage.options import Cleanup, Durability, LogOptions
from goqueue.telemetry.logs import get_logger

FIRST_EPOCH = 0

events = get_logger("replica")

PartitionName = tuple[str, int]


class Replicas:
    def __init__(
        self,
        directory: DataDirectory,
        *,
        defaults: TopicOptions,
        disk_reserve_bytes: int,
        sync_interval_ms: int,
        defer: Defer,
    ) -> None:
        self.directory = directory
        self.defaults = defaults
        """What a topic gets that does not say otherwise."""
        self.disk_reserve_bytes = disk_reserve_bytes
        self._sync_interval_ms = sync_interval_ms
        self._defer = defer
        self._replicas: dict[PartitionName, Replica] = {}
        self.on_open: Callable[[Replica], None] = lambda replica: None
        self.failed: dict[PartitionName, GoQueueError] = {}
        """Copies that could not be opened, and why. The others are served."""

    def get(self, topic: str, partition: int) -> Replica | None:
        return self._replicas.get((topic, partition))

    def __iter__(self) -> Iterator[Replica]:
        return iter(self._replicas.values())

    def __len__(self) -> int:
        return len(self._replicas)

    def open(self, topic: Topic, partition: int, now_ms: int) -> Replica | None:
        """None: it cannot be opened; the reason is kept in `failed` and logged."""
        name = topic.name, partition
        if name in self._replicas or name in self.failed:
            return self._replicas.get(name)
        options = topic.options(self.defaults)
        try:
            log = self.directory.open_log(topic.name, partition, self._log_options(options), now_ms)
            replica = Replica(
                log,
                f"{topic.name}/{partition}",
                leader_epoch=log.state.epochs.latest + 1,
                options=options,
                defer=self._defer,
                now_ms=now_ms,
            )
        except GoQueueError as error:
            self.failed[name] = error
            return None
        replica.place = name
        self._replicas[name] = replica
        self.on_open(replica)
        return replica

    def set_options(self, topic: Topic) -> None:
        """What was changed holds from now on, for the segments to come."""
        options = topic.options(self.defaults)
        for partition in range(topic.partitions):
            replica = self._replicas.get((topic.name, partition))
            if replica is not None:
                replica.options = options
                replica.log.set_options(self._log_options(options))

    def remove(self, topic: str, partition: int) -> None:
        replica = self._replicas.pop((topic, partition), None)
        self.failed.pop((topic, partition), None)
        self.directory.delete_log(topic, partition)
        if replica is not None:
            replica.abandoned()

    def maintain(self, now_ms: int) -> None:
        self.directory.maintain(now_ms)
        for replica in self._replicas.values():
            replica.producers.expire(now_ms)
            replica.producers.open_transactions.drop_below(replica.start_offset)
            replica.producers.open_transactions.forget_decided(replica.high_watermark)

    def sync(self) -> None:
        """So that whoever waits for an acknowledgement gets it."""
        for replica in self._replicas.values():
            try:
                if replica.failure is None:
                    replica.sync()
            except GoQueueError as error:
                events.error("copy not synced", copy=replica.name, reason=str(error))

    def close(self) -> None:
        for replica in self._replicas.values():
            try:
                replica.close()
            except GoQueueError as error:
                events.error("copy not closed cleanly", copy=replica.name, reason=str(error))
        self.directory.close()

    def _log_options(self, options: TopicOptions) -> LogOptions:
        return LogOptions(
            durability=Durability(options.durability),
            cleanup=Cleanup(options.cleanup_policy),
            batch_bytes_max=options.max_message_bytes + 1,
            segment_bytes=options.segment_bytes,
            segment_ms=options.segment_ms,
            retention_ms=options.retention_ms,
            retention_bytes=options.retention_bytes,
            disk_reserve_bytes=self.disk_reserve_bytes,
            sync_interval_ms=self._sync_interval_ms,
            dirty_ratio_min=options.min_cleanable_dirty_ratio,
            tombstone_ms=options.delete_retention_ms,
        )
