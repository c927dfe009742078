"""`goqueue delay`."""

from goqueue.cli.call import Call
from goqueue.cli.output import Column, column


async def list_delayed(call: Call) -> None:
    columns = (
        Column("PLACE", lambda each: f"{each.partition}/{each.offset}"),
        column("DELIVER AT", "deliver_at"),
        column("IN", "time_remaining"),
        column("STATE", "state"),
    )
    found = await call.admin.delayed(call.given.topic, call.given.limit)
    call.out.rows(found, columns, nothing="nothing waits for its time")


async def cancel(call: Call) -> None:
    topic, (partition, offset) = call.given.topic, call.given.place
    await call.admin.cancel(topic, partition, offset)
    facts = {"topic": topic, "partition": partition, "offset": offset, "cancelled": True}
    call.out.done(f"cancelled {topic}/{partition}/{offset}", facts)


async def reschedule(call: Call) -> None:
    topic, (partition, offset) = call.given.topic, call.given.place
    moved = await call.admin.reschedule(topic, partition, offset, delay=call.given.delay, at=call.given.at)
    call.out.done(f"{topic}/{partition}/{offset} comes at {moved.deliver_at}, in {moved.time_remaining}", moved)
