"""The copies that this node keeps, by topic and partition, each opened with its topic's options; and its ledgers, which
have a table of their own: whoever looks for a topic, by whatever name a client chose, never finds a ledger.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain

from goqueue.model.errors import GoQueueError, LogPoisoned
from goqueue.model.names import LEDGER_PREFIX
from goqueue.model.topics import Topic, TopicOptions
from goqueue.records.batch import NO_EPOCH
from goqueue.replica.companions import CompanionName, Companions
from goqueue.replica.opening import Opening
from goqueue.replica.replica import Defer, Replica
from goqueue.storage.data_directory import DataDirectory
from goqueue.storage.options import Cleanup, Durability, LogOptions
from goqueue.telemetry.logs import get_logger

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
        """Of topics."""
        self._ledgers: dict[PartitionName, Replica] = {}
        self.companions = Companions(directory, self._opening_companion, self._options_of)
        self.epoch = NO_EPOCH
        """In which this node leads whatever nobody else says more of. NO_EPOCH: each log goes on behind its last."""
        self.on_open: Callable[[Replica], None] = lambda replica: None
        self._maintained_s: float | None = None
        self.failed: dict[PartitionName, GoQueueError] = {}
        """Copies that could not be opened, and why. The others are served."""
        self.made_anew: list[str] = []
        """Logs that this start should have found and did not."""

    def get(self, topic: str, partition: int) -> Replica | None:
        """Of a topic, never a ledger."""
        return self._replicas.get((topic, partition))

    def __iter__(self) -> Iterator[Replica]:
        """Those of topics."""
        return iter(self._replicas.values())

    @property
    def ledgers(self) -> Sequence[Replica]:
        """With the companions of partitions."""
        return [*self._ledgers.values(), *self.companions]

    def _all(self) -> Iterator[Replica]:
        return chain(self._replicas.values(), self._ledgers.values(), self.companions)

    def companion(self, kind: str, topic_id: bytes, partition: int, durability: str, now_ms: int) -> Replica:
        """The log of this kind (`deliveries` or `delays`) that belongs to a partition, made if there is none. It has
        the durability that was asked for last, from then on. LogPoisoned if it cannot be opened.

        Costs no sync, also when it is made: its files become durable with its first append, before that is
        acknowledged. `companions.on_disk()` names those that a start finds, open or not; `companions.find(name)` makes
        none. `Topics` removes them with their topic.
        """
        return self.companions.find_or_make(CompanionName(kind, topic_id, partition), durability, now_ms)

    def _options_of(self, topic: Topic) -> tuple[TopicOptions, LogOptions]:
        options = topic.options(self.defaults)
        return options, self._log_options(options)

    def _opening_companion(self, topic: Topic, partition: int, now_ms: int) -> Opening:
        return self.opening(topic, [partition], now_ms, is_lazy=True)

    def open_ledger(
        self, name: str, partition: int, overrides: Mapping[str, str], now_ms: int, *, is_lazy: bool = False
    ) -> Replica:
        """A log of the broker's own, which no topic can be called like: its name begins with `@`. It belongs to whoever
        opens it; LogPoisoned if it cannot be opened. `is_lazy`: one that is made costs no sync, its files become
        durable with its first append."""
        assert name.startswith(LEDGER_PREFIX), name
        opening = self.opening(Topic(name, b"", partition + 1, overrides), [partition], now_ms, is_lazy=is_lazy)
        opening.run()
        replica = opening.opened.get(partition)
        if replica is None:
            raise LogPoisoned(f"ledger {name}/{partition} cannot be opened: {opening.failed[partition]}")
        self.directory.adopt(name, partition, replica.log)
        self._ledgers[name, partition] = replica
        return replica

    def __len__(self) -> int:
        return len(self._replicas)

    def open(self, topic: Topic, partition: int, now_ms: int) -> Replica | None:
        """None: it cannot be opened; the reason is kept in `failed` and logged."""
        if self.missing(topic, [partition]):
            opening = self.opening(topic, [partition], now_ms)
            opening.run()
            self.adopt(opening)
        return self._replicas.get((topic.name, partition))

    def missing(self, topic: Topic, partitions: Iterable[int]) -> list[int]:
        """Those of them that are neither open nor known to have failed."""
        names = ((topic.name, partition) for partition in partitions)
        return [name[1] for name in names if name not in self._replicas and name not in self.failed]

    def opening(self, topic: Topic, partitions: Sequence[int], now_ms: int, *, is_lazy: bool = False) -> Opening:
        """Of missing ones: to be run, in whatever thread, and then to be adopted."""
        options, log_options = self._options_of(topic)
        return Opening(
            self.directory,
            topic,
            partitions,
            options,
            log_options,
            self._defer,
            now_ms,
            epoch=self.epoch,
            is_lazy=is_lazy,
        )

    def note_made_anew(self, replica: Replica) -> None:
        """It should have been there: the metadata knows of it from before this start."""
        self.made_anew.append(replica.name)
        events.warning(
            "log made anew",
            log=replica.name,
            note="its files were gone; normal if the node was killed while it was made",
        )

    def adopt(self, opening: Opening) -> None:
        """What was opened is in service from now on."""
        for partition in opening.partitions:
            name = opening.topic, partition
            replica = opening.opened.get(partition)
            if replica is None:
                self.failed[name] = opening.failed.get(partition) or LogPoisoned(f"{name} was not opened")
                continue
            self.directory.adopt(*name, replica.log)
            self._replicas[name] = replica
            self.on_open(replica)

    def set_options(self, topic: Topic) -> None:
        """What was changed holds from now on, for the segments to come."""
        options, log_options = self._options_of(topic)
        for partition in range(topic.partitions):
            replica = self._replicas.get((topic.name, partition))
            if replica is not None:
                replica.set_options(options, log_options)

    def retire(self, topic: str, partitions: Iterable[int]) -> Callable[[], None]:
        """Take copies out of service. Returns what removes their files, which any thread may do."""
        numbers = list(partitions)
        remove = self.directory.retire(topic, numbers)
        for number in numbers:
            self.failed.pop((topic, number), None)
            replica = self._replicas.pop((topic, number), None)
            if replica is not None:
                replica.abandoned()
        return remove

    def maintain(self, now_ms: int, monotonic_s: float) -> None:
        """To be called now and then. `now_ms`: records that are too old by it go. `monotonic_s`: durations are measured
        by it.
        """
        passed_ms = 0 if self._maintained_s is None else round((monotonic_s - self._maintained_s) * 1000)
        self._maintained_s = monotonic_s
        self.directory.maintain(now_ms)
        with suppress(OSError):
            self.directory.look_at_room(self.disk_reserve_bytes)
        for replica in self._all():
            replica.producers.expire(passed_ms)
            replica.producers.open_transactions.drop_below(replica.start_offset)
            replica.producers.open_transactions.forget_decided(replica.high_watermark)

    def sync(self) -> None:
        """So that whoever waits for an acknowledgement gets it."""
        for replica in self._all():
            try:
                if replica.failure is None:
                    replica.sync()
            except GoQueueError as error:
                events.error("copy not synced", copy=replica.name, reason=str(error))

    def close(self) -> None:
        for replica in self._all():
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
            compaction_lag_ms_min=options.min_compaction_lag_ms,
            compaction_lag_ms_max=options.max_compaction_lag_ms,
        )
