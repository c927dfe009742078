"""Receiving: messages are leased to whoever asks, at once or when some come."""

from base64 import b64encode
from collections.abc import Callable
from typing import Any

from goqueue.broker.queues.leased_records import Leased
from goqueue.broker.queues.taking import LeasedPlace, ReceiveRequest
from goqueue.doors.sqs.call import Call
from goqueue.doors.sqs.identity import Headers, first_place, id_of, sequence_number
from goqueue.doors.sqs.queue import GROUP, SECOND_MS, Queue
from goqueue.machines.deliveries.commands import Place
from goqueue.records import dead_letters
from goqueue.records.delayed import PUBLISHED_AT
from goqueue.records.wishes import DEDUP_ID, FORMER_DEDUP_ID
from goqueue.wire.sqs.attributes import BODY_ENCODING, TRACE, TRACE_ATTRIBUTE, attributes_of
from goqueue.wire.sqs.checks import MESSAGES_MAX, VISIBILITY_SECONDS_MAX, WAIT_SECONDS_MAX, check_range
from goqueue.wire.sqs.digests import md5_of, md5_of_attributes
from goqueue.wire.sqs.errors import invalid_value
from goqueue.wire.sqs.queue_attributes import unknown
from goqueue.wire.sqs.requests import MessageAttribute, ReceiveMessage

CONSUMER = "sqs"
SYSTEM = (
    "SenderId",
    "SentTimestamp",
    "ApproximateReceiveCount",
    "ApproximateFirstReceiveTimestamp",
    "SequenceNumber",
    "MessageDeduplicationId",
    "MessageGroupId",
    TRACE_ATTRIBUTE,
    "DeadLetterQueueSourceArn",
)
KNOWN = frozenset(("All", *SYSTEM))


async def receive_message(call: Call, request: ReceiveMessage) -> dict[str, Any]:
    queue = call.queue(request.queue_url)
    names = _names(request)
    wanted = ReceiveRequest(
        group_id=GROUP,
        consumer=CONSUMER,
        places=[(queue.name, partition) for partition in range(queue.topic.partitions)],
        records_max=check_range(_or(request.max_number_of_messages, 1), "MaxNumberOfMessages", 1, MESSAGES_MAX),
        wait_ms=_wait_ms(queue, request.wait_time_seconds),
        lease_ms=_lease_ms(request.visibility_timeout),
    )
    found: list[LeasedPlace] = await call.wait(lambda done: call.broker.receiver.receive(wanted, done))
    messages = [
        _message(call, queue, leased, one, names, request.message_attribute_names)
        for leased in found
        if leased.error is None
        for one in call.broker.receiver.read(leased, GROUP)
    ]
    for leased in found:
        if leased.error is not None and not messages:
            raise leased.error
    return {"Messages": messages} if messages else {}


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def _names(request: ReceiveMessage) -> frozenset[str]:
    names = [*request.attribute_names, *request.message_system_attribute_names]
    for name in names:
        if name not in KNOWN:
            raise unknown(name)
    return frozenset(SYSTEM if "All" in names else names)


def _wait_ms(queue: Queue, seconds: int | None) -> int:
    if seconds is None:
        return queue.number("ReceiveMessageWaitTimeSeconds") * SECOND_MS
    if not 0 <= seconds <= WAIT_SECONDS_MAX:
        raise invalid_value(seconds, "WaitTimeSeconds", f"Must be >= 0 and <= {WAIT_SECONDS_MAX}, if provided.")
    return seconds * SECOND_MS


def _lease_ms(seconds: int | None) -> int | None:
    if seconds is None:
        return None
    return max(1, check_range(seconds, "VisibilityTimeout", 0, VISIBILITY_SECONDS_MAX) * SECOND_MS)


def _message(
    call: Call, queue: Queue, leased: LeasedPlace, one: Leased, names: frozenset[str], attribute_names: list[str]
) -> dict[str, Any]:
    record, _ = one
    headers: Headers = dict(record.headers)
    place = first_place(headers, queue.name, leased.partition, record.offset)
    body, is_text = _text(record.value)
    attributes = attributes_of(record.headers, attribute_names)
    if not is_text and ("All" in attribute_names or BODY_ENCODING in attribute_names):
        attributes[BODY_ENCODING] = MessageAttribute("String", "base64")
    where = Place(GROUP, queue.name, leased.partition)
    message: dict[str, Any] = {
        "MessageId": id_of(call.broker.topics.image, place),
        "ReceiptHandle": call.broker.settler.receipt(where, record.offset, leased.lease, leased.epoch),
        "MD5OfBody": md5_of(body.encode()),
        "Body": body,
    }
    if names:
        message["Attributes"] = _system(call, queue, one, headers, place, names)
    if attributes:
        message["MessageAttributes"] = attributes
        message["MD5OfMessageAttributes"] = md5_of_attributes(attributes)
    return message


def _text(value: bytes | None) -> tuple[str, bool]:
    """Another client may have published what is no text."""
    try:
        return (value or b"").decode(), True
    except UnicodeDecodeError:
        return b64encode(value or b"").decode(), False


def _system(
    call: Call, queue: Queue, one: Leased, headers: Headers, place: tuple[str, int, int], names: frozenset[str]
) -> dict[str, str]:
    record, run = one
    is_moved = place[0] != queue.name

    def sent() -> str:
        own = headers.get(PUBLISHED_AT) or headers.get(dead_letters.TIMESTAMP)
        return own.decode() if own is not None and own.isdigit() else str(max(record.timestamp, 0))

    makers: dict[str, Callable[[], str | None]] = {
        "SenderId": lambda: call.naming.account_id,
        "SentTimestamp": sent,
        "ApproximateReceiveCount": lambda: str(run.attempt),
        "ApproximateFirstReceiveTimestamp": lambda: str(run.first_delivered_ms),
        "SequenceNumber": lambda: sequence_number(record.offset if is_moved else place[2]) if queue.is_fifo else None,
        "MessageDeduplicationId": lambda: _shown(headers.get(DEDUP_ID) or headers.get(FORMER_DEDUP_ID)),
        "MessageGroupId": lambda: _shown(record.key),
        TRACE_ATTRIBUTE: lambda: _shown(headers.get(TRACE)),
        "DeadLetterQueueSourceArn": lambda: _source(call, queue, headers.get(dead_letters.TOPIC)),
    }
    made = {name: makers[name]() for name in SYSTEM if name in names}
    return {name: text for name, text in made.items() if text is not None}


def _shown(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="backslashreplace")


def _source(call: Call, queue: Queue, topic: bytes | None) -> str | None:
    """A header that names a queue whose dead letters go elsewhere was not written by us."""
    name = (topic or b"").decode(errors="replace")
    is_known = bool(name) and call.broker.dead_letters.name_of(name) == queue.name
    return call.naming.arn(name) if is_known else None
