"""Publishing: one batch into one partition, checked the same way whichever door it came through."""

from collections.abc import Callable

from goqueue.broker.topics import Topics
from goqueue.model.codes import Code
from goqueue.model.refusal import Refused
from goqueue.records.batch import Batch, check_batch
from goqueue.records.decode import decode
from goqueue.replica.replica import Appended, Replica
from goqueue.runtime.clock import Clock

__all__ = ["Appended", "Publisher", "Replica"]

VerifyTransaction = Callable[[Batch, str, int], Code]


class Publisher:
    def __init__(self, topics: Topics, clock: Clock, verify_transaction: VerifyTransaction) -> None:
        self._topics = topics
        self._clock = clock
        self._verify_transaction = verify_transaction
        self.batches = 0
        self.bytes = 0

    def publish(self, topic: str, partition: int, data: memoryview) -> tuple[Replica, Appended]:
        """Append the one batch in `data`, whose memory is written to. Raises one of our errors if it may not be.

        Acknowledge when the replica's high watermark has reached `next_offset`.
        """
        replica = self._topics.replica(topic, partition)
        batch = check_batch(data)
        if batch.size != len(data):
            raise Refused(Code.INVALID_RECORD, "exactly one batch per partition is taken")
        if not batch.is_dense or not batch.record_count or batch.is_control:
            raise Refused(Code.INVALID_RECORD, f"{batch!r} is not what a producer may send")
        if batch.is_transactional:
            verdict = self._verify_transaction(batch, topic, partition)
            if verdict is not Code.NONE:
                raise Refused(verdict)
        if replica.log.options.compacts:
            self._check_keys(batch)
        appended = replica.append(batch, self._clock.now_ms())
        self.batches += 1
        self.bytes += batch.size
        return replica, appended

    def _check_keys(self, batch: Batch) -> None:
        if any(record.key is None for record in decode(batch)):
            raise Refused(Code.INVALID_RECORD, "a compacted topic takes only records with a key")
