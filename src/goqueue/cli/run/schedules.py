"""`goqueue schedule`."""

from typing import Any

from goqueue.cli.call import Call
from goqueue.cli.output import column

PAGE = 1000


async def list_schedules(call: Call) -> None:
    found: list[Any] = []
    while True:
        page = await call.admin.schedules(PAGE, skip=len(found))
        found += page
        if len(page) < PAGE:
            break
    columns = (
        column("NAME", "name"),
        column("TOPIC", "topic"),
        column("CRON", "cron"),
        column("TIMEZONE", "timezone"),
        column("NEXT RUN", "next_run"),
        column("LAST RUN", "last_run"),
    )
    call.out.rows(found, columns, nothing="no schedules yet")


async def set_schedule(call: Call) -> None:
    given = call.given
    made = await call.admin.schedule(
        given.name,
        given.topic,
        given.message,
        cron=given.cron,
        timezone=given.timezone,
        key=given.key,
        headers=dict(given.header) or None,
        priority=given.priority,
    )
    call.out.done(f"schedule {made.name} publishes to {made.topic} next at {made.next_run}", made)


async def delete(call: Call) -> None:
    await call.admin.delete_schedule(call.given.name)
    call.out.done(f"deleted schedule {call.given.name}", {"name": call.given.name, "deleted": True})
