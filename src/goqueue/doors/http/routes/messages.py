"""Messages into a topic, and out of one partition as a stream."""

from goqueue.broker.reading.scan import scan
from goqueue.doors.http.as_json import record_of, shown_record
from goqueue.doors.http.call import Call
from goqueue.doors.http.errors import BAD_REQUEST, HttpError
from goqueue.doors.http.operation import Handlers
from goqueue.doors.http.permissions import PUBLISHES, READS_TOPIC
from goqueue.model.errors import GoQueueError
from goqueue.model.lanes import Lane
from goqueue.model.moments import format_moment, parse_moment_ms
from goqueue.records.decode import DecodedRecord
from goqueue.records.messages import NewMessage, Sent
from goqueue.records.replays import Where
from goqueue.wire.rest.messages import (
    MessageReply,
    Messages,
    PartitionPath,
    Publish,
    Published,
    PublishedAll,
    ReadQuery,
)
from goqueue.wire.rest.operations import messages as operations
from goqueue.wire.rest.topics import TopicPath

READ_BYTES_MAX = 8 * 1024 * 1024

messages = Handlers()


@messages.handles(operations.PUBLISH, PUBLISHES)
async def publish(call: Call, path: TopicPath, body: Publish) -> PublishedAll:
    topic = await call.topic_to_publish_to(path.topic)
    now_ms = call.now_ms
    records: list[NewMessage] = []
    wrong: dict[int, GoQueueError] = {}
    for number, message in enumerate(body.messages):
        try:
            records.append(record_of(message, now_ms))
        except GoQueueError as error:
            wrong[number] = error.kept()
            call.broker.publisher.refused(topic.name, -1, 1, error)
    sent: list[Sent] = await call.ask(lambda done: call.broker.sender.send(topic.name, records, done))
    pairs = iter(zip(records, sent))
    return PublishedAll(
        results=[
            _refused(wrong[number]) if number in wrong else _published(*next(pairs), now_ms)
            for number in range(len(body.messages))
        ]
    )


def _refused(error: GoQueueError) -> Published:
    return Published(partition=-1, offset=-1, priority=Lane.NORMAL.name.lower(), delayed=False, error=str(error))


def _published(record: NewMessage, sent: Sent, now_ms: int) -> Published:
    due_ms = now_ms + record.delay_ms if record.delay_ms is not None else record.deliver_at_ms
    is_delayed = sent.error is None and due_ms is not None and due_ms > now_ms
    published = Published(
        partition=sent.partition, offset=sent.offset, priority=record.lane.name.lower(), delayed=is_delayed
    )
    if is_delayed and due_ms is not None:
        published.deliver_at = format_moment(due_ms)
    if sent.error is None:
        published.durability = sent.durability
    else:
        published.error = str(sent.error)
    return published


@messages.handles(operations.READ_MESSAGES, READS_TOPIC)
async def read_messages(call: Call, path: PartitionPath, query: ReadQuery) -> Messages:
    call.topic(path.topic)
    replica = call.broker.topics.replica(path.topic, path.partition)
    first = query.offset
    if first is None:
        where = Where("earliest")
        if query.from_time is not None:
            where = Where(moment_ms=parse_moment_ms(query.from_time, call.now_ms))
        first = call.broker.replays.resolve(path.topic, path.partition, where)
    if first > replica.high_watermark:
        raise HttpError(
            BAD_REQUEST,
            "OFFSET_OUT_OF_RANGE",
            f"offset {first} lies beyond the end of {path.topic}/{path.partition}, which is {replica.high_watermark}",
        )
    found: list[DecodedRecord] = []
    size = 0

    def take(records: list[DecodedRecord]) -> bool:
        nonlocal size
        for record in records:
            if len(found) == query.limit or (found and size > READ_BYTES_MAX):
                return False
            found.append(record)
            size += len(record.value or b"") + len(record.key or b"")
        return len(found) < query.limit and size <= READ_BYTES_MAX

    end = replica.last_stable_offset
    _: GoQueueError | None = await call.ask(lambda done: scan(replica, (first, end), call.broker.clock, take, done))
    is_all = len(found) < query.limit and size <= READ_BYTES_MAX
    return Messages(
        messages=[MessageReply(**shown_record(path.partition, record)) for record in found],
        next_offset=max(first, end) if is_all else found[-1].offset + 1,
    )
