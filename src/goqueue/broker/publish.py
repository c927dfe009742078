"""Publishing: one batch into one partition, checked the same way whichever door it came through."""

from collections.abc import Callable, Sequence

from goqueue.broker.acknowledgements import Acknowledgements
from goqueue.broker.topics import Topics
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import Refused
from goqueue.records.batch import CONTROL_BIT, LENGTH_END, TRANSACTIONAL_BIT, Batch, check_batch
from goqueue.records.decode import decode
from goqueue.replica.replica import Appended, Replica
from goqueue.runtime.clock import Clock

__all__ = ["Acknowledgements", "Appended", "Batch", "Publisher", "Replica"]

VerifyTransaction = Callable[[Batch, str, int], Code]


class Publisher:
    def __init__(self, topics: Topics, clock: Clock, verify_transaction: VerifyTransaction) -> None:
        self._topics = topics
        self._clock = clock
        self._verify_transaction = verify_transaction
        self.acknowledgements = Acknowledgements(clock)
        self.batches = 0
        self.bytes = 0

    def publish(self, topic: str, partition: int, data: memoryview) -> tuple[Replica, Appended]:
        """Append the one batch in `data`, whose memory is written to. Raises one of our errors if it may not be.

        `acknowledgements` tells when the replica's high watermark has reached `next_offset`.
        """
        replica = self._topics.replica(topic, partition)
        batch = self.admit(replica, topic, partition, data)
        batches_before = replica.appended_batches
        appended = replica.append(batch, self._clock.now_ms())
        if replica.appended_batches > batches_before:  # else it was here already
            self.batches += 1
            self.bytes += len(data)
        return replica, appended

    def admit(self, replica: Replica, topic: str, partition: int, data: memoryview) -> Batch:
        """The one batch in `data`, if it may be published. Changes nothing, so that it may be asked twice."""
        batch = check_batch(data)
        attributes = batch.attributes
        if batch.length != len(data) - LENGTH_END:
            raise Refused(Code.INVALID_RECORD, "exactly one batch per partition is taken")
        if batch.record_count != batch.last_offset_delta + 1 or attributes & CONTROL_BIT:
            raise Refused(Code.INVALID_RECORD, f"{batch!r} is not what a producer may send")
        if attributes & TRANSACTIONAL_BIT:
            verdict = self._verify_transaction(batch, topic, partition)
            if verdict is not Code.NONE:
                raise Refused(verdict)
        if replica.log.compacts:
            self._check_keys(batch)
        return batch

    def append(self, replica: Replica, batches: Sequence[Batch]) -> list[Appended | GoQueueError]:
        """Append admitted batches in one write: for each where it stands, or why it was turned away."""
        batches_before, bytes_before = replica.appended_batches, replica.appended_bytes
        results = replica.append_all(batches, self._clock.now_ms())
        self.batches += replica.appended_batches - batches_before
        self.bytes += replica.appended_bytes - bytes_before
        return results

    def _check_keys(self, batch: Batch) -> None:
        if any(record.key is None for record in decode(batch)):
            raise Refused(Code.INVALID_RECORD, "a compacted topic takes only records with a key")
