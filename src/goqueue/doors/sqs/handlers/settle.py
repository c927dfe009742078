"""What becomes of received messages: deleted, or visible again after another time."""

from collections.abc import Sequence
from typing import Any

from goqueue.broker.queues.settle import Wanted
from goqueue.doors.sqs.call import Call, told
from goqueue.doors.sqs.handlers.send import batch_answer, failure
from goqueue.doors.sqs.queue import GROUP, SECOND_MS, Queue
from goqueue.machines.deliveries.commands import How, Verdict
from goqueue.model.errors import GoQueueError, MalformedReceipt
from goqueue.wire.sqs.checks import VISIBILITY_SECONDS_MAX, check_entries, check_range, need
from goqueue.wire.sqs.errors import SqsError, invalid_value
from goqueue.wire.sqs.requests import (
    ChangeMessageVisibility,
    ChangeMessageVisibilityBatch,
    DeleteEntry,
    DeleteMessage,
    DeleteMessageBatch,
    VisibilityEntry,
)

Answer = SqsError | None


async def delete_message(call: Call, request: DeleteMessage) -> dict[str, Any]:
    await _one(call, request.queue_url, DeleteEntry("", request.receipt_handle))
    return {}


async def change_message_visibility(call: Call, request: ChangeMessageVisibility) -> dict[str, Any]:
    need(request.visibility_timeout, "VisibilityTimeout")
    await _one(call, request.queue_url, VisibilityEntry("", request.receipt_handle, request.visibility_timeout))
    return {}


async def delete_message_batch(call: Call, request: DeleteMessageBatch) -> dict[str, Any]:
    queue = call.queue(request.queue_url)
    return await _batch(call, queue, check_entries(request.entries, "DeleteMessageBatchRequestEntry"))


async def change_message_visibility_batch(call: Call, request: ChangeMessageVisibilityBatch) -> dict[str, Any]:
    queue = call.queue(request.queue_url)
    return await _batch(call, queue, check_entries(request.entries, "ChangeMessageVisibilityBatchRequestEntry"))


async def _one(call: Call, url: str | None, entry: DeleteEntry) -> None:
    queue = call.queue(url)
    (answer,) = await _settle(call, queue, [entry])
    if answer is not None:
        try:
            raise answer.kept()
        finally:
            del answer  # the error holds this frame


async def _batch(call: Call, queue: Queue, entries: Sequence[DeleteEntry]) -> dict[str, Any]:
    answers = await _settle(call, queue, entries)
    successful = [{"Id": entry.id} for entry, answer in zip(entries, answers) if answer is None]
    failed = [failure(entry.id or "", answer) for entry, answer in zip(entries, answers) if answer is not None]
    return batch_answer(successful, failed)


async def _settle(call: Call, queue: Queue, entries: Sequence[DeleteEntry]) -> list[Answer]:
    answers: list[Answer] = [None] * len(entries)
    wanted: dict[int, Wanted] = {}
    for number, entry in enumerate(entries):
        try:
            wanted[number] = _wanted(call, queue, entry)
        except SqsError as error:
            answers[number] = error.kept()
    verdicts: list[Verdict | GoQueueError] = await call.ask(
        lambda done: call.broker.settler.settle(list(wanted.values()), done)
    )
    for (number, want), verdict in zip(wanted.items(), verdicts, strict=True):
        answers[number] = _judge(queue, want, verdict)
    return answers


def _wanted(call: Call, queue: Queue, entry: DeleteEntry) -> Wanted:
    receipt = need(entry.receipt_handle, "ReceiptHandle")
    try:
        place = call.broker.settler.place_of(receipt)
    except MalformedReceipt as error:
        raise told(error) from None
    if (place.group_id, place.topic) != (GROUP, queue.name):
        raise SqsError("ReceiptHandleIsInvalid", "The input receipt handle is not of this queue.")
    if not isinstance(entry, VisibilityEntry):
        return Wanted(receipt)
    seconds = need(entry.visibility_timeout, "VisibilityTimeout")
    check_range(seconds, "VisibilityTimeout", 0, VISIBILITY_SECONDS_MAX)
    if not seconds:
        return Wanted(receipt, How.RETRY, 0)
    return Wanted(receipt, How.EXTEND, seconds * SECOND_MS)


def _judge(queue: Queue, want: Wanted, verdict: Verdict | GoQueueError) -> Answer:
    if isinstance(verdict, GoQueueError):
        return told(verdict)
    if verdict is Verdict.DONE:
        return None
    if want.how is How.ACK:
        if verdict is Verdict.EXPIRED and queue.is_fifo:
            return invalid_value(want.receipt, "ReceiptHandle", "The receipt handle has expired.")
        return None  # it is gone, or another consumer has it and will delete it
    if verdict is Verdict.EXPIRED:
        return SqsError("MessageNotInflight", "The message referred to is not in flight.")
    return invalid_value(
        want.receipt,
        "ReceiptHandle",
        "Message does not exist or is not available for visibility timeout change.",
    )
