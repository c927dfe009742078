"""What can be read of one copy of a partition, whoever leads it."""

from collections.abc import Iterator

from goqueue.model.topics import TopicOptions
from goqueue.records.batch import Batch, split
from goqueue.records.slice import Slice
from goqueue.storage.log import Log
from goqueue.storage.snapshots import SnapshotFiles
from goqueue.storage.time_reads import Moment, first_at_or_after

READ_BYTES = 1024 * 1024
NO_TIMESTAMP = -1


def batches_from(log: Log, offset: int) -> Iterator[Batch]:
    while (piece := log.read(offset, READ_BYTES)) is not None:
        yield from split(piece.view())
        offset = piece.next_offset


def snapshots_of(log: Log, kind: str) -> SnapshotFiles:
    """Holds on to the log's state alone: what is deleted is gone with its last reader, and not when the collector of
    cycles comes by."""
    state = log.state
    return SnapshotFiles(log.disk, log.directory, kind, lambda offset: state.epochs.at(offset - 1))


class LogReads:
    def __init__(self, log: Log, name: str, options: TopicOptions) -> None:
        self.log = log
        self.name = name
        self._take_options(options)
        self.place = ("", -1)
        """Topic and partition."""
        self.read_bytes = 0
        """By readers, since it was opened."""

    def _take_options(self, options: TopicOptions) -> None:
        self.options = options
        """Of its topic."""
        self.stamps_time = options.message_timestamp_type == "LogAppendTime"

    @property
    def start_offset(self) -> int:
        return self.log.start_offset

    @property
    def end_offset(self) -> int:
        return self.log.end_offset

    @property
    def size_bytes(self) -> int:
        return self.log.segments.size_bytes

    def snapshots(self, kind: str) -> SnapshotFiles:
        """Each is saved with the epoch that wrote what it knows last."""
        return snapshots_of(self.log, kind)

    def read(self, offset: int, max_bytes: int, limit_offset: int) -> Slice | None:
        piece = self.log.read(offset, max_bytes, limit_offset)
        if piece is not None:
            self.read_bytes += piece.length
        return piece

    def batches_from(self, offset: int) -> Iterator[Batch]:
        return batches_from(self.log, offset)

    def first_at_or_after(self, timestamp: int) -> Moment | None:
        return first_at_or_after(self.log, timestamp)

    def newest(self) -> Moment | None:
        """The record with the highest timestamp."""
        return first_at_or_after(self.log, self.newest_ms) if self.end_offset > self.start_offset else None

    @property
    def newest_ms(self) -> int:
        """The highest timestamp of a record, or NO_TIMESTAMP."""
        return max((segment.max_timestamp for segment in self.log.segments), default=NO_TIMESTAMP)

    def epoch_at(self, offset: int) -> int:
        return self.log.state.epochs.at(min(offset, self.end_offset))

    def end_of_epoch(self, epoch: int) -> int:
        """Where what was written up to this epoch ends: at the next one, or at the end of the log."""
        if epoch < 0 or epoch >= self.log.state.epochs.latest:
            return self.end_offset
        return self.log.epoch_end(epoch)[1]
