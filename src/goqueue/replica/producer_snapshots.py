"""What is known of a partition's producers, saved now and then so that a start need not walk over the whole log."""

from goqueue.machines.partitions.producer_state import ProducerStates
from goqueue.model.errors import GoQueueError
from goqueue.replica.reads import LogReads
from goqueue.telemetry.logs import get_logger

events = get_logger("replica")


class ProducerSnapshots:
    def __init__(self, copy: LogReads) -> None:
        self._copy = copy
        self._files = copy.snapshots("producers")
        self.offset = copy.start_offset
        """Of the last one."""

    def load(self) -> ProducerStates:
        """From the last snapshot, and what came after it."""
        copy, producers = self._copy, ProducerStates()
        self.offset = copy.start_offset
        snapshot = self._files.latest(up_to=copy.end_offset)
        if snapshot is not None and snapshot.offset >= self.offset:
            producers = ProducerStates.decode(snapshot.entries[0][1])
            self.offset = snapshot.offset
        producers.replay(copy.batches_from(self.offset))
        return producers

    def save(self, offset: int, state: bytes) -> None:
        """Synced first: a snapshot must not know what the log could still lose."""
        log = self._copy.log
        if log.failure is not None or offset <= self.offset:
            return
        try:
            if log.synced_offset < offset:
                log.sync()
            self._files.save(offset, 0, [(b"producers", state)])
        except (OSError, GoQueueError) as error:  # costs only the shortcut: the next start walks over the log
            events.error("producers not saved", copy=self._copy.name, reason=str(error))
            return
        self.offset = offset
