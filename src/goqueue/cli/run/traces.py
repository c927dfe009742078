"""`goqueue trace` and `goqueue why`."""

from collections.abc import Sequence
from typing import Any

from goqueue.cli.call import Call
from goqueue.cli.output import Column, column
from goqueue.cli.run.asking import ask
from goqueue.cli.values import spot


async def search(call: Call) -> None:
    if call.given.key is not None and call.given.topic is None:
        call.given.refuse("--key needs --topic: a key is looked for in one topic")
    await ask(call)


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
            "Node": where.node,
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
