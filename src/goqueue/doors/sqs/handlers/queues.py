"""Queues: made, found, listed, emptied, deleted."""

import asyncio
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from goqueue.doors.sqs.call import Call
from goqueue.doors.sqs.handlers.attributes import check_attributes, current
from goqueue.doors.sqs.queue import (
    ATTRIBUTES,
    CREATED,
    GROUP,
    KEPT,
    MODIFIED,
    SECOND_MS,
    TAGS,
    Queue,
    new_options,
    options_of,
    write_label,
)
from goqueue.machines.controller_commands import CreateTopic, DeleteTopic
from goqueue.machines.deliveries.commands import Place
from goqueue.model.access import Kind
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.starts import EARLIEST
from goqueue.wire.sqs.checks import FIFO, PAGE_MAX, check_queue_name, check_range, need
from goqueue.wire.sqs.errors import SqsError, invalid_parameter
from goqueue.wire.sqs.queue_attributes import DEFAULTS, check_tags, check_throughput
from goqueue.wire.sqs.requests import (
    CreateQueue,
    GetQueueUrl,
    ListDeadLetterSourceQueues,
    ListQueues,
    OfQueue,
)

CANCELLED_AT_ONCE = 1000
OPEN_TRIES_MAX = 20
OPEN_AGAIN_S = 0.1


async def create_queue(call: Call, request: CreateQueue) -> dict[str, Any]:
    name = need(request.queue_name, "QueueName")
    asks_fifo = "FifoQueue" in request.attributes
    check_queue_name(name, is_fifo=asks_fifo or name.endswith(FIFO))
    if name.endswith(FIFO) and not asks_fifo:
        raise invalid_parameter("Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length.")
    attributes, redrive = check_attributes(call, name, request.attributes, asks_fifo)
    check_throughput(attributes)
    check_tags(request.tags)
    if call.queues.find(name) is None:
        call.broker.admit(Kind.GROUP, GROUP)  # before the topic is made: who is refused leaves nothing behind
        now_s = str(call.broker.clock.now_ms() // SECOND_MS)
        labels = {each: attributes[each] for each in KEPT if each in attributes} | {CREATED: now_s, MODIFIED: now_s}
        overrides = new_options(asks_fifo) | options_of({**DEFAULTS, **attributes}) | redrive
        overrides |= {ATTRIBUTES: write_label(labels), TAGS: write_label(request.tags)}
        command = CreateTopic(name, call.broker.topics.new_id(), _partitions(call, overrides), overrides)
        result = await call.change_topic(command)
        if result.code is Code.NONE:
            queue = call.queue_named(name)
            await _open(call, queue, range(queue.topic.partitions))
            return {"QueueUrl": call.url(name)}
    known = call.queues.find(name)
    if known is None:
        raise SqsError("QueueDeletedRecently", "A queue of this name is being deleted; its files are not gone yet.")
    _check_same(call, known, attributes, redrive)
    return {"QueueUrl": call.url(name)}


def _check_same(call: Call, queue: Queue, attributes: dict[str, str], redrive: dict[str, str]) -> None:
    """A queue may be made again, as it is."""
    now = current(call, queue)
    asked = dict(attributes)
    if "RedrivePolicy" in asked:
        same = all(queue.topic.overrides.get(name, "") == text for name, text in redrive.items())
        asked["RedrivePolicy"] = now.get("RedrivePolicy", "") if same else "another"
    for name, text in asked.items():
        if now.get(name, "") != text:
            raise SqsError(
                "QueueNameExists",
                f"A queue already exists with the same name and a different value for attribute {name}",
            )


async def _open(call: Call, queue: Queue, partitions: Iterable[int]) -> None:
    """The group is there from the beginning, so that it gets what is sent from then on."""
    for partition in partitions:
        await _open_place(call, Place(GROUP, queue.name, partition))


async def _open_place(call: Call, place: Place) -> None:
    """In a cluster, the leader of a partition that was just made may be about to begin."""
    for attempt in range(OPEN_TRIES_MAX):
        try:
            await call.ask(partial(call.broker.queues.open, place, EARLIEST))
        except GoQueueError as error:
            if not error.retriable or attempt + 1 == OPEN_TRIES_MAX:
                raise
        else:
            return
        await asyncio.sleep(OPEN_AGAIN_S)


async def get_queue_url(call: Call, request: GetQueueUrl) -> dict[str, Any]:
    return {"QueueUrl": call.url(call.queue_named(need(request.queue_name, "QueueName")).name)}


async def list_queues(call: Call, request: ListQueues) -> dict[str, Any]:
    names = [queue.name for queue in call.queues if queue.name.startswith(request.queue_name_prefix)]
    return _page(call, names, request, "QueueUrls")


async def list_dead_letter_source_queues(call: Call, request: ListDeadLetterSourceQueues) -> dict[str, Any]:
    target = call.queue(request.queue_url).name
    names = [queue.name for queue in call.queues if queue.dead_letters == target]
    return _page(call, names, request, "queueUrls")


def _page(
    call: Call, names: Sequence[str], request: ListQueues | ListDeadLetterSourceQueues, field: str
) -> dict[str, Any]:
    """A token is the name behind which to go on, so that queues may come and go between two pages."""
    after = _after(request.next_token)
    most = PAGE_MAX if request.max_results is None else check_range(request.max_results, "MaxResults", 1, PAGE_MAX)
    rest = sorted(name for name in names if name > after)
    answer: dict[str, Any] = {field: [call.url(name) for name in rest[:most]]}
    if len(rest) > most and request.max_results is not None:
        answer["NextToken"] = urlsafe_b64encode(rest[most - 1].encode()).decode()
    return answer


def _after(token: str | None) -> str:
    try:
        return urlsafe_b64decode(token or "").decode()
    except ValueError:
        raise invalid_parameter("Invalid or expired next token.") from None


async def delete_queue(call: Call, request: OfQueue) -> dict[str, Any]:
    await call.change_topic(DeleteTopic(call.queue(request.queue_url).name))
    return {}


async def purge_queue(call: Call, request: OfQueue) -> dict[str, Any]:
    """For those who receive: the group goes on behind all that is there. Other readers of the topic see it still."""
    queue = call.queue(request.queue_url)
    here = call.broker.topics.led(queue.name, range(queue.topic.partitions))
    await _open(call, queue, here)
    for partition in here:
        end = call.broker.topics.end_offset(queue.name, partition) or 0
        place = Place(GROUP, queue.name, partition)
        await call.ask(lambda done, place=place, end=end: call.broker.queues.seek(place, end, done))  # type: ignore[misc]
    schedules, after = call.broker.schedules, None
    while waiting := schedules.pending(queue.name, None, after, CANCELLED_AT_ONCE):
        keys = [found.schedule.key for found in waiting]
        await asyncio.gather(
            *(call.ask(lambda done, key=key: schedules.cancel(key, done)) for key in keys)  # type: ignore[misc]
        )
        after = keys[-1]  # what cannot be cancelled any more is being published at this moment
    return {}


def _partitions(call: Call, overrides: Mapping[str, str]) -> int:
    """In a cluster one leader must know all ids of a queue, unless they count for each group of messages alone."""
    has_one_scope = "dedup.ms" in overrides and overrides.get("dedup.scope") != "key"
    return 1 if has_one_scope and call.broker.topics.image.ledgers else call.broker.default_partitions
