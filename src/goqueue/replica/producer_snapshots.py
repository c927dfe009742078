"""What is known of a partition's producers, saved now and then so that a start need not walk over the whole log."""

from goqueue.machines.partitions.producer_state import ProducerStates
from goqueue.model.errors import GoQueueError
from goqueue.replica.reads import batches_from, snapshots_of
from goqueue.storage.log import Log
from goqueue.telemetry.logs import get_logger

events = get_logger("replica")


class ProducerSnapshots:
    def __init__(self, log: Log, name: str) -> None:
        self._log = log
        self._name = name
        self._files = snapshots_of(log, "producers")
        self.offset = log.start_offset
        """Of the last one."""

    def load(self) -> ProducerStates:
        """From the last snapshot, and what came after it."""
        log, producers = self._log, ProducerStates()
        self.offset = log.start_offset
        snapshot = self._files.latest(up_to=log.end_offset)
        if snapshot is not None and snapshot.offset >= self.offset:
            producers = ProducerStates.decode(snapshot.entries[0][1])
            self.offset = snapshot.offset
        producers.replay(batches_from(log, self.offset))
        return producers

    def save(self, offset: int, state: bytes) -> None:
        """Synced first: a snapshot must not know what the log could still lose."""
        log = self._log
        if log.failure is not None or offset <= self.offset:
            return
        try:
            if log.synced_offset < offset:
                log.sync()
            self._files.save(offset, 0, [(b"producers", state)])
        except (OSError, GoQueueError) as error:  # costs only the shortcut: the next start walks over the log
            events.error("producers not saved", copy=self._name, reason=str(error))
            return
        self.offset = offset
