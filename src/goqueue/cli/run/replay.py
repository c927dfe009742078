"""`goqueue replay`."""

from goqueue.cli.call import Call
from goqueue.cli.output import count, number, plain
from goqueue.cli.run.dlq import filter_of


async def replay(call: Call) -> None:
    given = call.given
    replaying = call.admin.replay(
        given.group,
        given.topic,
        given.start,
        given.stop,
        filter=filter_of(given),
        rate=given.rate,
        fork_as=given.fork_as,
        dry_run=given.dry_run,
    )
    done = await call.progress.while_waiting(f"choosing messages of {given.topic}", replaying)
    if not call.out.is_for_a_person:
        call.out.data(plain(done))
        return
    columns = (
        number("PARTITION", "partition"),
        number("FROM", "from_offset"),
        number("TO", "to_offset"),
        number("MESSAGES", "messages"),
    )
    call.out.rows(done.partitions, columns)
    verb = "would be" if done.dry_run else "are"
    call.out.line(f"{count(done.messages, 'message')} of {done.topic} {verb} delivered to {done.group} again")
