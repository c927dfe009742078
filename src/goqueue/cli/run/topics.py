"""`goqueue topic`."""

from typing import Any

from goqueue.cli.call import Call
from goqueue.cli.output import Column, count, number, plain, size
from goqueue.client import HttpRefused
from goqueue.model.group_options import PAUSED
from goqueue.wire.rest.topics import Partition, TopicDetails

DEAD_LETTERS = ".dlq"
CONFLICT = 409


async def list_topics(call: Call) -> None:
    stats = (await call.admin.stats()).topic_stats
    shown = [stats[name] for name in sorted(stats) if call.given.all or not name.endswith(DEAD_LETTERS)]
    columns = (
        Column("NAME", lambda each: each.name, is_name=True),
        number("PARTITIONS", "partitions"),
        number("MESSAGES", "total_messages"),
        Column("SIZE", lambda each: size(each.total_size), is_number=True),
    )
    call.out.rows(shown, columns, nothing="no topics yet; make one with: goqueue topic create NAME")


def _options(call: Call) -> dict[str, Any]:
    given = call.given
    options: dict[str, Any] = dict(given.set)
    if given.retention is not None:
        options["retention.ms"] = str(given.retention)
    if given.retention_bytes is not None:
        options["retention.bytes"] = str(given.retention_bytes)
    return options


async def create(call: Call) -> None:
    name = call.given.name
    try:
        made = await call.admin.create_topic(name, call.given.partitions, **_options(call))
    except HttpRefused as error:
        if error.status != CONFLICT or not call.given.if_not_exists:
            raise
        found = await call.admin.topic(name)
        facts = {"name": name, "partitions": found.partitions, "created": False}
        call.out.done(f"topic {name} is there already, with {count(found.partitions, 'partition')}", facts)
        return
    call.out.done(f"made topic {made.name} with {count(made.partitions, 'partition')}", made)


async def describe(call: Call) -> None:
    topic = await call.admin.topic(call.given.name)
    call.out.facts(
        topic,
        {
            "Name": topic.name,
            "Id": topic.id,
            "Partitions": topic.partitions,
            "Messages": topic.total_messages,
            "Size": size(topic.total_size_bytes),
            "Options": topic.options or "all as the node says",
        },
    )
    if call.out.is_for_a_person:
        call.out.heading("Partitions")
        places = await call.admin.partitions(topic.name)
        rows = [[str(each.partition), *_reach(topic, each.partition), *_copies(each)] for each in places]
        titles = ["PARTITION", "EARLIEST", "NEXT", "MESSAGES", "LEADER", "REPLICAS", "IN SYNC"]
        call.out.table(titles, rows, [True] * 4 + [False] * 3)


def _reach(topic: TopicDetails, partition: int) -> tuple[str, str, str]:
    found = topic.partition_offsets.get(str(partition))
    if found is None:  # its leader does not answer
        return "-", "-", "-"
    return str(found.earliest), str(found.next), str(found.next - found.earliest)


def _copies(of: Partition) -> tuple[str, str, str]:
    return of.leader or "-", ",".join(of.replicas), ",".join(of.isr)


async def alter(call: Call) -> None:
    given = call.given
    options = _options(call) | dict.fromkeys(given.unset)
    if not options and given.partitions is None:
        given.refuse("say what to change: --partitions, --retention, --retention-bytes, --set or --unset")
    if options:
        await call.admin.set_options(given.name, **options)
    if given.partitions is not None:
        await call.admin.add_partitions(given.name, given.partitions)
    topic = await call.admin.topic(given.name)
    options_now = ", ".join(f"{name}={value}" for name, value in topic.options.items()) or "as the node says"
    call.out.done(f"topic {topic.name} has {count(topic.partitions, 'partition')}; options: {options_now}", topic)


async def trim(call: Call) -> None:
    given = call.given
    if given.offset is not None and given.partition is None:
        given.refuse("--offset needs --partition: every partition counts on its own")
    before = given.before_time if given.offset is None else given.offset
    await _trim(call, before, f"Throw away what is older in {given.name}, for good?", given.dry_run)


async def purge(call: Call) -> None:
    topic = await call.admin.topic(call.given.name)
    question = f"Throw away {count(topic.total_messages, 'message')} of {topic.name}, for good?"
    await _trim(call, "latest", question, call.given.dry_run)


async def _trim(call: Call, before: str | int, question: str, dry_run: bool) -> None:
    given = call.given
    if not given.force and not dry_run:
        call.confirm(question, flag="--force")
    done = await call.admin.trim(given.name, before, partition=given.partition, dry_run=dry_run)
    if not call.out.is_for_a_person:
        call.out.data(plain(done))
        return
    columns = (number("PARTITION", "partition"), number("BEGAN AT", "before"), number("BEGINS AT", "after"))
    call.out.rows(done.partitions, columns)
    removed = count(sum(each.after - each.before for each in done.partitions), "message")
    call.out.line(f"{removed} would go: this was a dry run" if dry_run else f"threw away {removed}")


async def delete(call: Call) -> None:
    name = call.given.name
    if not call.given.force:
        topic = await call.admin.topic(name)
        question = f"Delete topic {name} with {count(topic.total_messages, 'message')}, for good?"
        call.confirm(question, flag="--force")
    await call.admin.delete_topic(name)
    call.out.done(f"deleted topic {name}", {"name": name, "deleted": True})


async def pause(call: Call) -> None:
    await _deliver(call, PAUSED, "is paused: queue groups are given nothing of it")


async def resume(call: Call) -> None:
    await _deliver(call, None, "is delivered again")


async def _deliver(call: Call, delivery: str | None, words: str) -> None:
    topic = await call.admin.set_options(call.given.name, delivery=delivery)
    call.out.done(f"topic {call.given.name} {words}", topic)
