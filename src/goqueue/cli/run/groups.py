"""`goqueue group`."""

from collections.abc import Awaitable
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from goqueue.cli.call import Call
from goqueue.cli.exits import EXIT_NOT_FOUND, CommandFailed
from goqueue.cli.output import Column, column, number, plain
from goqueue.client import HttpRefused
from goqueue.model.group_options import PAUSED

T = TypeVar("T")


class GroupNumbers(NamedTuple):
    """What a group has still to do. Where it reads no queue, nothing is ready, leased or waiting."""

    group: str
    type: str
    state: str
    ready: int | None
    leased: int | None
    waiting: int | None
    lag: int


def numbers_of(found: Any) -> GroupNumbers:
    queues = [each.queue for each in found.partitions if each.queue]
    ready, leased, waiting = (
        (
            sum(sum(queue.ready.values()) + queue.beyond for queue in queues),
            sum(sum(queue.leased.values()) for queue in queues),
            sum(queue.waiting for queue in queues),
        )
        if queues
        else (None, None, None)
    )
    return GroupNumbers(found.group, kind_of(found), found.state, ready, leased, waiting, found.total_lag)


def kind_of(group: Any) -> str:
    """A group that takes messages from a queue is a share group to Kafka's tools. Here it has one name."""
    return "queue" if group.type == "share" else str(group.type)


async def list_groups(call: Call) -> None:
    groups = await call.admin.groups()
    if call.out.form == "name":
        call.out.rows(groups, (Column("GROUP", lambda each: each.id, is_name=True),))
        return
    counts = {each.group: numbers_of(each) for each in await call.admin.lags()}
    rows = [plain(each) | {"type": kind_of(each)} | _counts(counts.get(each.id)) for each in groups]
    columns = (
        Column("GROUP", itemgetter("id")),
        Column("TYPE", itemgetter("type")),
        Column("STATE", itemgetter("state")),
        *(Column(name.upper(), itemgetter(name), is_number=True) for name in ("members", *COUNTED)),
        Column("TOPICS", itemgetter("topics")),
    )
    call.out.rows(rows, columns, nothing="no groups yet")


COUNTED = ("ready", "leased", "waiting", "lag")


def _counts(of: GroupNumbers | None) -> dict[str, int | None]:
    """None: the group is gone by now."""
    return {name: getattr(of, name, None) for name in COUNTED}


async def describe(call: Call) -> None:
    group = await call.admin.group(call.given.group)
    lag = await call.admin.lag(call.given.group)
    if not call.out.is_for_a_person:
        counts = _counts(numbers_of(lag)) | {"lag": plain(lag.partitions)}
        call.out.data(plain(group) | {"type": kind_of(group), "total_lag": lag.total_lag} | counts)
        return
    of_queue = numbers_of(lag)
    queue = {"Ready": of_queue.ready, "Leased": of_queue.leased, "Waiting": of_queue.waiting}
    call.out.facts(
        group,
        {
            "Group": group.id,
            "Type": kind_of(group),
            "State": group.state,
            "Generation": group.generation,
            "Assignor": group.assignor or None,
            "Topics": group.topics or None,
            "Lag": lag.total_lag,
            **(queue if of_queue.ready is not None else {}),
        },
    )
    if group.members:
        call.out.heading("Members")
        columns = (
            column("MEMBER", "member_id"),
            column("CLIENT", "client_id"),
            column("HOST", "host"),
            Column("PARTITIONS", lambda each: [f"{part.topic}/{part.partition}" for part in each.partitions]),
        )
        call.out.rows(group.members, columns)
    if lag.partitions:
        call.out.heading("Partitions")
        call.out.rows(lag.partitions, LAG_COLUMNS)


LAG_COLUMNS = (
    column("TOPIC", "topic"),
    number("PARTITION", "partition"),
    number("COMMITTED", "committed_offset"),
    number("SETTLED", "settled_offset"),
    number("END", "end_offset"),
    number("LAG", "lag"),
    Column("READY", lambda each: each.queue and sum(each.queue.ready.values()) + each.queue.beyond, is_number=True),
    Column("LEASED", lambda each: each.queue and sum(each.queue.leased.values()), is_number=True),
    Column("WAITING", lambda each: each.queue and each.queue.waiting, is_number=True),
    Column("OWNER", lambda each: each.owner and each.owner.client_id),
)


async def delete(call: Call) -> None:
    name = call.given.group
    if not call.given.yes and not call.given.force:
        await call.admin.group(name)
        call.confirm(f"Forget all that group {name} has committed and settled?", flag="--yes")
    await call.admin.delete_group(name, force=call.given.force)
    call.out.done(f"deleted group {name}", {"group": name, "deleted": True})


async def offsets(call: Call) -> None:
    found = await call.admin.offsets(call.given.group, call.given.topic)
    rows: list[dict[str, Any]] = [
        {"topic": topic, "partition": int(partition), "offset": offset}
        for topic, partitions in found.items()
        for partition, offset in partitions.items()
    ]
    if not rows:
        known = {each.id for each in await call.admin.groups()}
        if call.given.group not in known:
            words = f"there is no group {call.given.group!r}\n  goqueue group list shows what is there"
            raise CommandFailed(words, EXIT_NOT_FOUND)
    columns = (
        Column("TOPIC", lambda each: each["topic"]),
        Column("PARTITION", lambda each: each["partition"], is_number=True),
        Column("OFFSET", lambda each: each["offset"], is_number=True),
    )
    call.out.rows(rows, columns, nothing="this group has committed nothing yet")


async def reset_offsets(call: Call) -> None:
    given = call.given
    to: str | int
    if given.to_offset is not None:
        to = given.to_offset
    elif given.to_time is not None:
        to = str(given.to_time)
    else:
        to = "earliest" if given.to_earliest else "latest"
    done = await call.admin.reset_offsets(
        given.group, given.topic, to, partition=given.partition, dry_run=given.dry_run, live=given.live
    )
    if not call.out.is_for_a_person:
        call.out.data(plain(done))
        return
    columns = (
        number("PARTITION", "partition"),
        Column("BEFORE", lambda each: None if each.before < 0 else each.before, is_number=True),
        number("AFTER", "after"),
    )
    call.out.rows(done.results, columns)
    if done.dry_run:
        call.out.line("nothing was changed: this was a dry run")


async def pause(call: Call) -> None:
    options = await _deliver(call, PAUSED)
    found = await _known(call.admin.group(call.given.group))
    if found is None or kind_of(found) == "queue":
        _done(call, options, "is paused: nothing is delivered to it")
    else:
        _done(call, options, "is paused, but it is a consumer group: what it reads as a stream it reads on")


async def resume(call: Call) -> None:
    options = await _deliver(call, None)
    found = await _known(call.admin.group(call.given.group))
    for name in [] if found is None else found.topics:
        topic = await _known(call.admin.topic(name))
        if topic is not None and topic.options.get("delivery") == PAUSED:
            words = f"is resumed, but topic {name} is still paused\n  goqueue topic resume {name} delivers it again"
            _done(call, options, words)
            return
    _done(call, options, "is delivered to again")


async def _deliver(call: Call, delivery: str | None) -> dict[str, str]:
    options: dict[str, str] = await call.admin.set_group_options(call.given.group, delivery=delivery)
    return options


async def _known(asked: Awaitable[T]) -> T | None:
    """None: there is no such thing yet, or it may not be seen."""
    try:
        return await asked
    except HttpRefused:
        return None


def _done(call: Call, options: dict[str, str], words: str) -> None:
    group = call.given.group
    call.out.done(f"group {group} {words}", {"group": group, "options": options})
