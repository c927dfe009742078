"""Messages that are published again and again, whenever a cron expression says so."""

from functools import partial

from goqueue.doors.http.as_json import bytes_of, lane_of, shown_content
from goqueue.doors.http.call import Call
from goqueue.doors.http.errors import NOT_FOUND, HttpError
from goqueue.doors.http.operation import Handlers
from goqueue.doors.http.permissions import READS_TOPIC, SCHEDULES
from goqueue.machines.delays.commands import FoundRecurring
from goqueue.model.ledgers import LedgerKind
from goqueue.model.moments import format_moment
from goqueue.model.recurring import Recurring
from goqueue.records.messages import NewMessage, Sent
from goqueue.wire.rest.delays import (
    NewSchedule,
    PageQuery,
    Schedule,
    ScheduleDeleted,
    SchedulePath,
    ScheduleRun,
    Schedules,
)
from goqueue.wire.rest.operations import delays as operations

schedules = Handlers(rests_on=(LedgerKind.DELAYS,))


@schedules.handles(operations.STORE_SCHEDULE, SCHEDULES)
async def store_schedule(call: Call, path: SchedulePath, body: NewSchedule) -> Schedule:
    message = NewMessage(
        value=bytes_of("value", body.value, body.value_base64),
        key=bytes_of("key", body.key, body.key_base64),
        headers=[(name, None if value is None else value.encode()) for name, value in (body.headers or {}).items()],
        lane=lane_of(body.priority),
    )
    content = message.value, message.key, message.all_headers()
    wanted = Recurring(path.name, body.topic, body.cron, *content, body.timezone, call.principal, call.host)
    await call.order(partial(call.broker.recurring.store, wanted))
    return _with_content(call, _found(call, path.name))


def _found(call: Call, name: str) -> FoundRecurring:
    found = call.broker.recurring.find(name)
    if found is None:
        raise HttpError(NOT_FOUND, "UNKNOWN_SCHEDULE", f"there is no recurring schedule {name!r}")
    return found


def _shown(found: FoundRecurring) -> Schedule:
    return Schedule(
        name=found.name,
        topic=found.topic,
        partition=found.partition,
        cron=found.cron,
        timezone=found.timezone,
        next_run=None if found.next_ms < 0 or found.is_paused else format_moment(found.next_ms),
        last_run=None if found.last_ms < 0 else format_moment(found.last_ms),
        paused=found.is_paused,
    )


def _with_content(call: Call, found: FoundRecurring) -> Schedule:
    shown = _shown(found)
    body = call.broker.recurring.body(found)
    if body is not None:
        for name, value in shown_content(body.key, body.value, body.headers).items():
            setattr(shown, name, value)
    return shown


@schedules.handles(operations.LIST_SCHEDULES, READS_TOPIC)
async def list_schedules(call: Call, query: PageQuery) -> Schedules:
    found = call.broker.recurring.all()
    page = found[query.skip : query.skip + query.limit]
    return Schedules(
        schedules=[_shown(each) for each in page],
        count=len(page),
        total=len(found),
        limit=query.limit,
        skip=query.skip,
    )


@schedules.handles(operations.DESCRIBE_SCHEDULE, READS_TOPIC)
async def describe_schedule(call: Call, path: SchedulePath) -> Schedule:
    return _with_content(call, _found(call, path.name))


@schedules.handles(operations.DELETE_SCHEDULE, SCHEDULES)
async def delete_schedule(call: Call, path: SchedulePath) -> ScheduleDeleted:
    _found(call, path.name)
    await call.order(partial(call.broker.recurring.drop, path.name))
    return ScheduleDeleted(deleted=True, name=path.name)


@schedules.handles(operations.PAUSE_SCHEDULE, SCHEDULES)
async def pause_schedule(call: Call, path: SchedulePath) -> Schedule:
    return await _paused(call, path.name, is_paused=True)


@schedules.handles(operations.RESUME_SCHEDULE, SCHEDULES)
async def resume_schedule(call: Call, path: SchedulePath) -> Schedule:
    return await _paused(call, path.name, is_paused=False)


async def _paused(call: Call, name: str, *, is_paused: bool) -> Schedule:
    _found(call, name)
    await call.order(partial(call.broker.recurring.pause, name, is_paused=is_paused))
    return _shown(_found(call, name))  # not its message: to write there is no right to read


@schedules.handles(operations.RUN_SCHEDULE, SCHEDULES)
async def run_schedule(call: Call, path: SchedulePath) -> ScheduleRun:
    found = _found(call, path.name)
    body = call.broker.recurring.body(found)
    if body is None:
        raise HttpError(NOT_FOUND, "UNKNOWN_SCHEDULE", f"the message of {path.name!r} cannot be read")
    message = NewMessage(value=body.value, key=body.key, headers=list(body.headers), partition=found.partition)
    sent: list[Sent] = await call.ask(lambda done: call.broker.sender.send(found.topic, [message], done))
    if sent[0].error is not None:
        raise sent[0].error.kept()
    return ScheduleRun(name=path.name, topic=found.topic, partition=sent[0].partition, offset=sent[0].offset)
