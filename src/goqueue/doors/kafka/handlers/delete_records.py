"""DeleteRecords. Answered when all in-sync copies have given the records up: one that leads later must not serve them
again.
"""

from collections.abc import Callable

from goqueue.doors.kafka.request import Request
from goqueue.model.codes import Code
from goqueue.model.error_codes import code_of
from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import Refused
from goqueue.wire.kafka.messages.topics import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

END_OF_LOG = -1
DELETE = "delete"


class Answer:
    """Given once, when nothing is waited for any more or the time is up."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self.response = DeleteRecordsResponse()
        self._waiting: dict[int, DeleteRecordsPartitionResult] = {}
        self._is_begun = False
        self._is_given = False

    def wait_for(self, result: DeleteRecordsPartitionResult) -> Callable[[GoQueueError | None], None]:
        number = len(self._waiting)
        self._waiting[number] = result

        def done(error: GoQueueError | None) -> None:
            waited = self._waiting.pop(number, None)
            if waited is not None and error is not None:
                waited.error_code = code_of(error)
            self._give()

        return done

    def begin(self, timeout_ms: int) -> None:
        self._is_begun = True
        self._give()
        if not self._is_given:
            self._request.broker.clock.call_after(timeout_ms, self._give_up)

    def _give(self) -> None:
        if self._is_begun and not self._waiting and not self._is_given:
            self._is_given = True
            self._request.answer(self.response)

    def _give_up(self) -> None:
        """Some have it still, and will give it up when they hear of it."""
        for result in self._waiting.values():
            result.error_code = Code.REQUEST_TIMED_OUT
        self._waiting.clear()
        self._give()


def handle_delete_records(request: Request) -> None:
    answer = Answer(request)
    for topic in request.message.topics:
        answered = DeleteRecordsTopicResult(topic.name)
        answer.response.topics.append(answered)
        for wanted in topic.partitions:
            result = DeleteRecordsPartitionResult(wanted.partition_index, -1)
            answered.partitions.append(result)
            try:
                _delete(request, topic.name, wanted.offset, result, answer)
            except GoQueueError as error:
                result.error_code = code_of(error)
    answer.begin(request.message.timeout_ms)


def _delete(request: Request, topic: str, offset: int, result: DeleteRecordsPartitionResult, answer: Answer) -> None:
    replica = request.broker.topics.replica(topic, result.partition_index)
    if DELETE not in replica.options.cleanup_policy:
        raise Refused(Code.POLICY_VIOLATION, "cleanup.policy of the topic does not say delete")
    replica.delete_before(replica.high_watermark if offset == END_OF_LOG else offset)
    result.low_watermark = replica.start_offset
    done = answer.wait_for(result)
    replica.when_start_told(lambda: done(replica.failure))
