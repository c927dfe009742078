"""`goqueue trace` and `goqueue why`."""

from collections.abc import Sequence
from typing import Any

from goqueue.cli.call import Call
from goqueue.cli.output import Column, column, number
from goqueue.cli.values import spot


def _show(call: Call, found: Sequence[Any]) -> None:
    columns = (
        column("TRACE", "trace_id"),
        Column("MESSAGE", lambda each: f"{each.topic}/{each.partition}/{each.offset}"),
        column("STATUS", "status"),
        column("START", "start_time"),
        Column("TOOK", lambda each: f"{each.duration_ms} ms", is_number=True),
        number("STEPS", "span_count"),
    )
    call.out.rows(found, columns, nothing="no traces found")


async def list_traces(call: Call) -> None:
    _show(call, await call.admin.traces(call.given.limit))


async def search(call: Call) -> None:
    given = call.given
    if given.key is not None and given.topic is None:
        given.refuse("--key needs --topic: a key is looked for in one topic")
    found = await call.admin.search_traces(
        topic=given.topic,
        partition=given.partition,
        group=given.group,
        start=given.start,
        end=given.end,
        status=given.status,
        key=given.key,
        limit=given.limit,
    )
    _show(call, found)


async def get(call: Call) -> None:
    trace = await call.admin.trace(call.given.id)
    call.out.facts(
        trace,
        {
            "Trace": trace.trace_id,
            "Message": f"{trace.topic}/{trace.partition}/{trace.offset}",
            "Status": trace.status,
            "Start": trace.start_time,
            "Took": f"{trace.duration_ms} ms",
        },
    )
    if call.out.is_for_a_person:
        call.out.heading("Steps")
        _steps(call, trace.events)


def _steps(call: Call, events: Sequence[Any]) -> None:
    columns = (
        column("TIME", "timestamp"),
        column("STEP", "event_type"),
        Column("GROUP", lambda each: each.details.get("consumer_group")),
        Column("CONSUMER", lambda each: each.details.get("consumer_id")),
        Column("DETAIL", lambda each: each.details.get("detail")),
    )
    call.out.rows(events, columns, nothing="nothing is remembered of it")


async def stats(call: Call) -> None:
    call.out.facts(await call.admin.trace_stats())


async def why(call: Call) -> None:
    given = call.given
    if given.key is not None:
        where = await call.admin.why_key(given.message, given.key)
    else:
        where = await call.admin.why(*spot(given.message))
    call.out.facts(
        where,
        {
            "Message": f"{where.topic}/{where.partition}/{where.offset}",
            "State": where.state,
            "Answer": where.answer,
            "Trace": where.trace_id,
            "Key": where.key,
            "Published": where.timestamp,
        },
    )
    if call.out.is_for_a_person:
        if where.groups:
            call.out.heading("Groups")
            columns = (
                column("GROUP", "group"),
                column("KIND", "kind"),
                column("STATE", "state"),
                column("ANSWER", "answer"),
            )
            call.out.rows(where.groups, columns)
        call.out.heading("Steps")
        _steps(call, where.events)
