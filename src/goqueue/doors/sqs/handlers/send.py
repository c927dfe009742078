"""Sending: one message, or up to ten."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from goqueue.doors.sqs.call import Call, told
from goqueue.doors.sqs.identity import message_id, sequence_number
from goqueue.doors.sqs.queue import SECOND_MS, Queue
from goqueue.records.messages import NewMessage, Sent
from goqueue.wire.sqs.attributes import (
    check_attributes,
    check_system_attributes,
    check_text,
    headers_of,
    size_of,
)
from goqueue.wire.sqs.checks import (
    check_batch_bytes,
    check_delay,
    check_entries,
    check_group_id,
    check_message_bytes,
    need,
)
from goqueue.wire.sqs.digests import md5_of, md5_of_attributes
from goqueue.wire.sqs.errors import SqsError, invalid_parameter, invalid_value
from goqueue.wire.sqs.requests import Outgoing, SendMessage, SendMessageBatch

NOT_FOR_THIS_QUEUE = "The request include parameter that is not valid for this queue type."


class Checked(NamedTuple):
    message: NewMessage
    told: dict[str, Any]
    """What its sender may check."""


async def send_message(call: Call, request: SendMessage) -> dict[str, Any]:
    queue = call.queue(request.queue_url)
    checked = _check(queue, request)
    (sent,) = await _send(call, queue, [checked.message])
    return _answer(queue, checked, sent)


async def send_message_batch(call: Call, request: SendMessageBatch) -> dict[str, Any]:
    queue = call.queue(request.queue_url)
    entries = check_entries(request.entries, "SendMessageBatchRequestEntry")
    check_batch_bytes(sum(size_of((each.message_body or "").encode(), each.message_attributes) for each in entries))
    if queue.is_fifo:
        for entry in entries:
            _check_fifo_batch(queue, entry)
    failed: list[dict[str, Any]] = []
    good: list[tuple[str, Checked]] = []
    for entry in entries:
        try:
            good.append((entry.id or "", _check(queue, entry)))
        except SqsError as error:
            failed.append(failure(entry.id or "", error))
    successful = []
    answers = await _send(call, queue, [checked.message for _, checked in good]) if good else []
    for (entry_id, checked), sent in zip(good, answers, strict=True):
        try:
            successful.append({"Id": entry_id, **_answer(queue, checked, sent)})
        except SqsError as error:
            failed.append(failure(entry_id, error))
    return batch_answer(successful, failed)


def batch_answer(successful: list[dict[str, Any]], failed: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: found for name, found in (("Successful", successful), ("Failed", failed)) if found}


def failure(entry_id: str, error: SqsError) -> dict[str, Any]:
    return {"Id": entry_id, "SenderFault": error.is_of_sender, "Code": error.kind.code, "Message": str(error)}


async def _send(call: Call, queue: Queue, messages: Sequence[NewMessage]) -> list[Sent]:
    sent: list[Sent] = await call.ask(lambda done: call.broker.sender.send(queue.name, messages, done))
    return sent


def _answer(queue: Queue, checked: Checked, sent: Sent) -> dict[str, Any]:
    if sent.error is not None:
        raise told(sent.error)
    answer = {**checked.told, "MessageId": message_id(queue.topic.id, sent.partition, sent.offset)}
    if queue.is_fifo:
        answer["SequenceNumber"] = sequence_number(sent.offset)
    return answer


def _check_fifo_batch(queue: Queue, entry: Outgoing) -> None:
    """In a batch these two concern the whole request."""
    if not entry.message_group_id:
        raise invalid_parameter("The request must contain the parameter MessageGroupId.")
    _dedup_id(queue, entry, b"")


def _check(queue: Queue, wanted: Outgoing) -> Checked:
    text = need(wanted.message_body, "MessageBody")
    check_text(text)
    body = text.encode()
    check_attributes(wanted.message_attributes)
    check_system_attributes(wanted.message_system_attributes)
    check_message_bytes(size_of(body, wanted.message_attributes), queue.message_bytes_max)
    message = NewMessage(
        body,
        _group(queue, wanted),
        headers_of(wanted.message_attributes, wanted.message_system_attributes),
        delay_ms=_delay_ms(queue, wanted),
        dedup_id=_dedup_id(queue, wanted, body),
    )
    about: dict[str, Any] = {"MD5OfMessageBody": md5_of(body)}
    if wanted.message_attributes:
        about["MD5OfMessageAttributes"] = md5_of_attributes(wanted.message_attributes)
    if wanted.message_system_attributes:
        about["MD5OfMessageSystemAttributes"] = md5_of_attributes(wanted.message_system_attributes)
    return Checked(message, about)


def _group(queue: Queue, wanted: Outgoing) -> bytes | None:
    if queue.is_fifo:
        need(wanted.message_group_id, "MessageGroupId")
    if wanted.message_group_id is None:
        return None
    return check_group_id(wanted.message_group_id, "MessageGroupId").encode()


def _delay_ms(queue: Queue, wanted: Outgoing) -> int | None:
    seconds = wanted.delay_seconds
    if seconds is not None:
        check_delay(seconds)
        if queue.is_fifo and seconds:
            raise invalid_value(seconds, "DelaySeconds", NOT_FOR_THIS_QUEUE)
    if seconds is None or queue.is_fifo:
        seconds = queue.number("DelaySeconds")
    return seconds * SECOND_MS or None


def _dedup_id(queue: Queue, wanted: Outgoing, body: bytes) -> bytes | None:
    given = wanted.message_deduplication_id
    if given is not None:
        if not queue.is_fifo:
            raise invalid_value(given[:128], "MessageDeduplicationId", NOT_FOR_THIS_QUEUE)
        return check_group_id(given, "MessageDeduplicationId").encode()
    if not queue.is_fifo:
        return None
    if queue.labels.get("ContentBasedDeduplication") != "true":
        raise invalid_parameter(
            "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId "
            "provided explicitly"
        )
    return sha256(body).hexdigest().encode()
