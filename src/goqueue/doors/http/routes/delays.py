"""What waits for its time in a topic: looked at, cancelled, put off."""

from collections.abc import Callable
from functools import partial

from goqueue.broker.delays.partition import Found
from goqueue.broker.delays.soonest import soonest
from goqueue.doors.http.as_json import shown_content
from goqueue.doors.http.call import Call
from goqueue.doors.http.errors import BAD_REQUEST, NOT_FOUND, HttpError
from goqueue.doors.http.operation import Handlers
from goqueue.doors.http.permissions import DESCRIBES_TOPIC, READS_TOPIC, WRITES_TOPIC
from goqueue.machines.delays.commands import FoundSchedule, ScheduleKey
from goqueue.model.codes import Code
from goqueue.model.ledgers import LedgerKind
from goqueue.model.moments import format_duration, format_moment, parse_duration_ms, parse_moment_ms
from goqueue.wire.rest.delays import (
    Cancelled,
    DelayedMessage,
    DelayedMessages,
    DelayedOffsetPath,
    DelayedPageQuery,
    DelayedPath,
    DelayedQuery,
    DelayStats,
    NewTime,
    TimerWheelStats,
)
from goqueue.wire.rest.operations import delays as operations
from goqueue.wire.rest.topics import TopicPath

TICK_MS = 5

delays = Handlers(rests_on=(LedgerKind.DELAYS,))


@delays.handles(operations.LIST_DELAYED, READS_TOPIC)
async def list_delayed(call: Call, path: TopicPath, query: DelayedPageQuery) -> DelayedMessages:
    topic = call.topic(path.topic)
    broker = call.broker
    if query.cursor is not None:
        return _by_place(call, topic.name, query, query.cursor)

    def ask_soonest(done: Callable[[tuple[list[FoundSchedule], int]], None]) -> None:
        count = query.skip + query.limit
        soonest(broker.schedules, broker.clock, topic.name, count, lambda found, total: done((found, total)))

    found, total = await call.ask(ask_soonest)
    page = found[query.skip :]
    return DelayedMessages(
        topic=topic.name,
        messages=[_shown(each, call.now_ms) for each in page],
        count=len(page),
        total=total,
        limit=query.limit,
        skip=query.skip,
        next=None,
    )


def _by_place(call: Call, topic: str, query: DelayedPageQuery, cursor: str) -> DelayedMessages:
    partition, offset = (int(part) for part in cursor.split("/"))
    schedules = call.broker.schedules
    found = schedules.waiting(topic, None, ScheduleKey(topic, partition, offset - 1), query.limit + 1)
    page = found[: query.limit]
    following = found[query.limit].key if len(found) > query.limit else None
    return DelayedMessages(
        topic=topic,
        messages=[_shown(each, call.now_ms) for each in page],
        count=len(page),
        total=schedules.count(topic),
        limit=query.limit,
        skip=query.skip,
        next=None if following is None else f"{following.partition}/{following.offset}",
    )


def _shown(schedule: FoundSchedule, now_ms: int) -> DelayedMessage:
    topic, partition, offset = schedule.key
    return DelayedMessage(
        topic=topic,
        partition=partition,
        offset=offset,
        deliver_at=format_moment(schedule.due_ms),
        time_remaining=format_duration(schedule.due_ms - now_ms),
        state="waiting_for_transaction" if schedule.waits_for_transaction else "pending",
    )


def _with_content(found: Found, now_ms: int) -> DelayedMessage:
    shown = _shown(found.schedule, now_ms)
    shown.published_at = format_moment(found.body.published_ms)
    for name, value in shown_content(found.body.key, found.body.value, found.body.headers).items():
        setattr(shown, name, value)
    return shown


@delays.handles(operations.FIND_DELAYED, READS_TOPIC)
async def find_delayed(call: Call, path: DelayedOffsetPath, query: DelayedQuery) -> DelayedMessage:
    topic = call.topic(path.topic)
    partitions = range(topic.partitions) if query.partition is None else [query.partition]
    keys = [ScheduleKey(topic.name, partition, path.offset) for partition in partitions]
    found = next((each for each in map(call.broker.schedules.look_up, keys) if each is not None), None)
    if found is None:
        raise _not_pending(f"nothing waits under offset {path.offset} in {topic.name!r}")
    return _with_content(found, call.now_ms)


@delays.handles(operations.LOOK_AT_DELAYED, READS_TOPIC)
async def look_at_delayed(call: Call, path: DelayedPath) -> DelayedMessage:
    call.topic(path.topic)
    return _with_content(_found(call, path), call.now_ms)


def _found(call: Call, path: DelayedPath) -> Found:
    found = call.broker.schedules.look_up(ScheduleKey(path.topic, path.partition, path.offset))
    if found is None:
        raise _not_pending(f"nothing waits at {path.topic}/{path.partition}/{path.offset}")
    return found


def _not_pending(message: str) -> HttpError:
    return HttpError(NOT_FOUND, "NOT_PENDING", message)


@delays.handles(operations.CANCEL_DELAYED, WRITES_TOPIC)
async def cancel_delayed(call: Call, path: DelayedPath) -> Cancelled:
    call.topic(path.topic)
    key = ScheduleKey(path.topic, path.partition, path.offset)
    reply = await call.ask(partial(call.broker.schedules.cancel, key))
    if reply.code is not Code.NONE:
        raise _not_pending(reply.message)
    return Cancelled(cancelled=True, canceled=True, topic=path.topic, partition=path.partition, offset=path.offset)


@delays.handles(operations.RESCHEDULE_DELAYED, WRITES_TOPIC)
async def reschedule_delayed(call: Call, path: DelayedPath, body: NewTime) -> DelayedMessage:
    call.topic(path.topic)
    key = ScheduleKey(path.topic, path.partition, path.offset)
    deliver_at = body.deliver_at if body.deliver_at is not None else body.deliver_at_too
    if (body.delay is None) == (deliver_at is None):
        raise HttpError(BAD_REQUEST, "INVALID_REQUEST", "say either delay or deliver_at")
    now_ms = call.now_ms
    if body.delay is not None:
        due_ms = now_ms + parse_duration_ms(body.delay)
    else:
        due_ms = parse_moment_ms(deliver_at or 0, now_ms)
    found = _found(call, path)
    reply = await call.ask(partial(call.broker.schedules.reschedule, key, due_ms))
    if reply.code is Code.UNKNOWN_TOPIC_OR_PARTITION or call.broker.schedules.look_up(key) is None:
        raise _not_pending(f"{path.topic}/{path.partition}/{path.offset} is being published")
    return _with_content(found._replace(schedule=found.schedule._replace(due_ms=due_ms)), now_ms)


@delays.handles(operations.DELAY_STATS, DESCRIBES_TOPIC)
async def delay_stats(call: Call) -> DelayStats:
    schedules = call.broker.schedules
    measure = schedules.measure()
    waiting = measure.pending + measure.waiting_for_transaction
    known = waiting + measure.firing + measure.fired + measure.cancelled
    return DelayStats(
        total_scheduled=known,
        total_delivered=measure.fired,
        total_canceled=measure.cancelled,
        total_cancelled=measure.cancelled,
        total_pending=waiting,
        pending_count=waiting,
        delivered_count=measure.fired,
        cancelled_count=measure.cancelled,
        avg_delay=format_duration(schedules.held_delay_ms // schedules.held if schedules.held else 0),
        waiting_for_transaction=measure.waiting_for_transaction,
        next_delivery_at=None if measure.next_due_ms < 0 else format_moment(measure.next_due_ms),
        by_topic=schedules.pending_by_topic(),
        timer_wheel=TimerWheelStats(
            total_scheduled=known,
            total_expired=measure.fired,
            total_canceled=measure.cancelled,
            current_active=measure.pending,
            current_tick=call.now_ms // TICK_MS,
        ),
    )
