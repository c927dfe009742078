"""`goqueue dlq`."""

from argparse import Namespace
from asyncio import CancelledError
from typing import Any

from goqueue.cli.call import Call
from goqueue.cli.exits import EXIT_FAILED
from goqueue.cli.output import Column, column, count, number


def filter_of(given: Namespace) -> dict[str, Any] | None:
    """As a body over HTTP takes it."""
    wanted: dict[str, Any] = {
        name: getattr(given, name, None) for name in ("key", "contains", "lane", "reason") if getattr(given, name, None)
    }
    if given.header is not None:
        wanted["headers"] = dict([given.header])
    return wanted or None


async def list_letters(call: Call) -> None:
    given = call.given
    chosen = filter_of(given) or {}
    if chosen.pop("headers", None):
        chosen["header"] = ":".join(given.header)
    found = []
    async for letter in call.admin.dead_letters(given.topic, **chosen):
        found.append(letter)
        if len(found) == given.limit:
            break
    columns = (
        Column("PLACE", lambda each: f"{each.partition}/{each.offset}"),
        Column("WAS", lambda each: f"{each.original_topic}/{each.original_partition}/{each.original_offset}"),
        column("GROUP", "group"),
        column("REASON", "reason"),
        number("ATTEMPTS", "attempts"),
        column("DIED", "died_at"),
        column("ERROR", "error"),
    )
    call.out.rows(found, columns, nothing="no dead letters")


async def show(call: Call) -> None:
    letter = await call.admin.dead_letter(call.given.topic, *call.given.place)
    call.out.facts(
        letter,
        {
            "Place": f"{letter.dlq_topic}/{letter.partition}/{letter.offset}",
            "Was": f"{letter.original_topic}/{letter.original_partition}/{letter.original_offset}",
            "Published": letter.original_timestamp,
            "Group": letter.group,
            "Reason": letter.reason,
            "Error": letter.error or None,
            "Attempts": letter.attempts,
            "First delivered": letter.first_delivered_at,
            "Died": letter.died_at,
            "Redriven": f"{letter.redrives} times",
            "Priority": letter.priority,
            "Key": letter.key,
            "Headers": letter.headers or None,
            "Value": letter.value if letter.value is not None else letter.value_base64,
        },
    )


async def redrive(call: Call) -> int:
    given = call.given
    total = 0
    places = [f"{partition}/{offset}" for partition, offset in given.places or ()] or None
    if call.progress.is_shown and not given.dry_run:
        total = (await call.admin.redrive(given.topic, filter=filter_of(given), places=places, dry_run=True)).redriven
    try:
        report = await call.admin.redrive(
            given.topic,
            to=given.to,
            filter=filter_of(given),
            places=places,
            rate=given.rate,
            redrives_max=given.redrives_max,
            dry_run=given.dry_run,
            on_progress=lambda now: call.progress.show("redrive", now.redriven, max(total, now.redriven, 1)),
        )
    except CancelledError:  # Ctrl-C ends this command, not the work
        if not given.dry_run:
            call.progress.note(f"the node goes on with it; goqueue dlq list {given.topic} shows what is left")
        raise
    call.progress.clear()
    verb = "would be sent back" if report.dry_run else "sent back"
    left = f", {count(report.looping, 'message')} left: sent back too often" if report.looping else ""
    failed = f", {report.failed} failed: {'; '.join(report.errors[:3])}" if report.failed else ""
    call.out.done(f"{count(report.redriven, 'message')} {verb}{left}{failed}", report)
    return EXIT_FAILED if report.failed or report.state == "failed" else 0


async def purge(call: Call) -> None:
    topic = call.given.topic
    if not call.given.force:
        call.confirm(f"Throw all dead letters of {topic} away, for good?", flag="--force")
    purged = await call.admin.purge_dead_letters(topic)
    call.out.done(f"threw {count(purged, 'dead letter')} of {topic} away", {"topic": topic, "purged": purged})
