"""A producer without a library around it: it may repeat, skip, lie and forget to ask, and sees every answer."""

from collections import defaultdict

from goqueue.model.codes import Code
from goqueue.records.build import build_batch
from goqueue.wire.kafka.messages import produce
from goqueue.wire.kafka.messages import transactions as wire_transactions
from tests.integration.process import wait_until
from tests.integration.wire import Wire

NOW_MS = 1_700_000_000_000


def plain_batch(*values: bytes) -> bytearray:
    return build_batch([(NOW_MS, None, value, []) for value in values])


def send_batch(
    wire: Wire, topic: str, data: bytes | bytearray, *, partition: int = 0, transactional_id: str | None = None
) -> tuple[Code, int]:
    """The code, and the offset if it is NONE."""
    places = [produce.PartitionProduceData(partition, memoryview(bytes(data)))]
    request = produce.ProduceRequest(
        transactional_id, -1, 30_000, [produce.TopicProduceData(topic, partition_data=places)]
    )
    answer = wire.call(request, 8, produce.ProduceResponse)
    result = answer.responses[0].partition_responses[0]
    return Code(result.error_code), result.base_offset


class BareProducer:
    def __init__(self, wire: Wire, transactional_id: str | None = None, timeout_ms: int = 60_000) -> None:
        self._wire = wire
        self._transactional_id = transactional_id
        self._timeout_ms = timeout_ms
        self.id = self.epoch = -1
        self._sequences: dict[tuple[str, int], int] = defaultdict(int)

    def init(self) -> None:
        """Until what was before is over."""
        wait_until(self._try_init, "a producer id")

    def _try_init(self) -> bool:
        request = wire_transactions.InitProducerIdRequest(self._transactional_id, self._timeout_ms)
        answer = self._wire.call(request, 4, wire_transactions.InitProducerIdResponse)
        if answer.error_code == Code.CONCURRENT_TRANSACTIONS:
            return False
        assert answer.error_code == Code.NONE
        self.id, self.epoch = answer.producer_id, answer.producer_epoch
        self._sequences.clear()
        return True

    def enlist(self, topic: str, *partitions: int) -> Code:
        """Until the transaction before is over."""
        codes: list[Code] = []

        def is_answered() -> bool:
            request = wire_transactions.AddPartitionsToTxnRequest(
                [],
                self._transactional_id or "",
                self.id,
                self.epoch,
                [wire_transactions.AddPartitionsToTxnTopic(topic, list(partitions))],
            )
            answer = self._wire.call(request, 3, wire_transactions.AddPartitionsToTxnResponse)
            (result,) = answer.results_by_topic_v3_and_below
            codes.append(Code(result.results_by_partition[0].partition_error_code))
            return codes[-1] is not Code.CONCURRENT_TRANSACTIONS

        wait_until(is_answered, "the end of the last transaction")
        return codes[-1]

    def send(self, topic: str, *values: bytes, partition: int = 0, sequence: int | None = None) -> tuple[Code, int]:
        """With `sequence` None the next one, as a library would."""
        place = topic, partition
        first = self._sequences[place] if sequence is None else sequence
        data = build_batch(
            [(NOW_MS, None, value, []) for value in values],
            producer_id=self.id,
            producer_epoch=self.epoch,
            base_sequence=first,
            transactional=self._transactional_id is not None,
        )
        answer = send_batch(self._wire, topic, data, partition=partition, transactional_id=self._transactional_id)
        if answer[0] is Code.NONE and sequence is None:
            self._sequences[place] = first + len(values)
        return answer

    def send_offset(self, group: str, topic: str, offset: int) -> Code:
        asked = wire_transactions.AddOffsetsToTxnRequest(self._transactional_id or "", self.id, self.epoch, group)
        added = self._wire.call(asked, 3, wire_transactions.AddOffsetsToTxnResponse)
        if added.error_code != Code.NONE:
            return Code(added.error_code)
        place = wire_transactions.TxnOffsetCommitRequestPartition(0, offset)
        request = wire_transactions.TxnOffsetCommitRequest(
            self._transactional_id or "",
            group,
            self.id,
            self.epoch,
            topics=[wire_transactions.TxnOffsetCommitRequestTopic(topic, partitions=[place])],
        )
        answer = self._wire.call(request, 3, wire_transactions.TxnOffsetCommitResponse)
        return Code(answer.topics[0].partitions[0].error_code)

    def ask_to_end(self, *, commit: bool) -> None:
        """Without waiting for the answer."""
        request = wire_transactions.EndTxnRequest(self._transactional_id or "", self.id, self.epoch, commit)
        self._wire.send(request, 3)

    def end(self, *, commit: bool) -> Code:
        self.ask_to_end(commit=commit)
        return Code(self._wire.receive(wire_transactions.EndTxnResponse, 3)[1].error_code)
