"""Some copies of one topic on their way into service. The disk's part takes long for many new partitions, so it may be
done in another thread: nobody else knows of these copies yet.
"""

from collections.abc import Sequence
from contextlib import suppress

from goqueue.model.errors import GoQueueError, LogPoisoned
from goqueue.model.topics import Topic, TopicOptions
from goqueue.records.batch import NO_EPOCH
from goqueue.replica.replica import Defer, Replica
from goqueue.replica.roles import Reign
from goqueue.storage.data_directory import DataDirectory
from goqueue.storage.options import LogOptions

FIRST_EPOCH = 0


class Opening:
    """`run` in any thread, once; then the rest belongs to the owner's."""

    def __init__(  # noqa: PLR0913  all that a copy is made of
        self,
        directory: DataDirectory,
        topic: Topic,
        partitions: Sequence[int],
        options: TopicOptions,
        log_options: LogOptions,
        defer: Defer,
        now_ms: int,
        *,
        epoch: int = NO_EPOCH,
        is_lazy: bool = False,
    ) -> None:
        """`epoch`: in which copies are led whose topic does not say. `is_lazy`: nothing is synced here, new logs become
        durable with their first append."""
        self.topic = topic.name
        self._topic_id = topic.id
        self.partitions = partitions
        self.opened: dict[int, Replica] = {}
        self.failed: dict[int, GoQueueError] = {}
        self._directory = directory
        self._options = options
        self._log_options = log_options
        self._defer = defer
        self._now_ms = now_ms
        self._is_lazy = is_lazy
        self._epoch = epoch
        self._placements = topic.placements

    def run(self) -> None:
        """Each is opened or known to have failed when this returns; one costs the others nothing."""
        made: set[int] = set()
        if not self._is_lazy:
            with suppress(OSError):  # each meets the error again, or does not
                made = self._directory.make_directories(self.topic, self.partitions)
        for partition in self.partitions:
            try:
                self.opened[partition] = self._open(partition, has_directory=partition in made)
            except GoQueueError as error:
                self.failed[partition] = error
            except OSError as error:
                self.failed[partition] = LogPoisoned(f"{self.topic}/{partition} cannot be opened: {error}")

    def _open(self, partition: int, *, has_directory: bool) -> Replica:
        reign = self._reign(partition)
        log = self._directory.load_log(
            self.topic,
            partition,
            self._log_options,
            self._now_ms,
            first_epoch=max(reign.epoch, FIRST_EPOCH),
            has_directory=has_directory,
            is_lazy=self._is_lazy,
            topic_id=self._topic_id,
        )
        replica = Replica(
            log,
            f"{self.topic}/{partition}",
            # Never an epoch that the log has seen, whatever became of the metadata.
            reign=reign._replace(epoch=max(reign.epoch, log.state.epochs.latest + (not log.is_new))),
            options=self._options,
            defer=self._defer,
        )
        replica.place = self.topic, partition
        return replica

    def _reign(self, partition: int) -> Reign:
        if partition >= len(self._placements):
            return Reign(self._epoch)
        placement = self._placements[partition]
        return Reign(placement.epoch, placement.leader, placement.isr, len(placement.replicas))
