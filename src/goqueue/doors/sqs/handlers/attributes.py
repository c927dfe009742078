"""Attributes and tags of queues."""

from collections.abc import Mapping
from typing import Any

from goqueue.doors.sqs.call import Call
from goqueue.doors.sqs.queue import (
    ATTRIBUTES,
    CREATED,
    GROUP,
    KEPT,
    MODIFIED,
    SECOND_MS,
    TAGS,
    Queue,
    options_of,
    write_label,
)
from goqueue.machines.controller_commands import SetOptions
from goqueue.machines.deliveries.commands import Place
from goqueue.model.errors import GoQueueError
from goqueue.wire.sqs.checks import need
from goqueue.wire.sqs.queue_attributes import (
    COUNTS,
    SETTABLE,
    TOLD,
    check_queue_attributes,
    check_tags,
    check_throughput,
    format_redrive_policy,
    invalid_redrive,
    parse_allow_policy,
    parse_redrive_policy,
    unknown,
)
from goqueue.wire.sqs.requests import GetQueueAttributes, OfQueue, SetQueueAttributes, TagQueue, UntagQueue

KNOWN = frozenset(("All", *SETTABLE, *TOLD))


def check_attributes(
    call: Call, name: str, attributes: Mapping[str, str], is_fifo: bool
) -> tuple[dict[str, str], dict[str, str]]:
    """Those to be kept, and the options of the topic that its redrive policy stands for."""
    kept = check_queue_attributes(attributes, is_fifo)
    if "RedriveAllowPolicy" in kept:
        parse_allow_policy(kept["RedriveAllowPolicy"])
    redrive: dict[str, str] = {}
    if "RedrivePolicy" in kept:
        text = kept["RedrivePolicy"]
        policy = parse_redrive_policy(text)
        if policy is None:
            redrive = {"attempts.max": "0", "dead.letter.topic": ""}
        else:
            target = _target(call, name, policy.target_arn, text, is_fifo)
            redrive = {"attempts.max": str(policy.receives_max), "dead.letter.topic": target}
    return kept, redrive


def _target(call: Call, name: str, arn: str, text: str, is_fifo: bool) -> str:
    target = call.naming.name_of_arn(arn)
    if not target:
        raise invalid_redrive(text, "Invalid value for deadLetterTargetArn.")
    queue = call.queues.find(target)
    if queue is None:
        raise invalid_redrive(text, "Dead letter target does not exist.")
    if target == name:
        raise invalid_redrive(text, "A queue cannot be its own dead letter target.")
    if queue.is_fifo != is_fifo:
        raise invalid_redrive(text, "Dead-letter queue must be same type of queue as the source.")
    allowed = queue.allow_policy
    if allowed is not None and allowed.redrivePermission != "allowAll":
        source = call.naming.arn(name)
        if allowed.redrivePermission == "denyAll" or source not in allowed.sourceQueueArns:
            raise invalid_redrive(text, f"Queue does not have permission to use {target} as a dead letter target.")
    return target


def current(call: Call, queue: Queue) -> dict[str, str]:
    """All attributes that a queue has, but for the counts."""
    found = queue.settings()
    found["QueueArn"] = call.naming.arn(queue.name)
    found["SqsManagedSseEnabled"] = "false"
    for name in (CREATED, MODIFIED, "RedriveAllowPolicy"):
        if queue.labels.get(name):
            found[name] = queue.labels[name]
    target = queue.dead_letters
    if target is not None:
        found["RedrivePolicy"] = format_redrive_policy(call.naming.arn(target), queue.options.attempts_max)
    return found


async def get_queue_attributes(call: Call, request: GetQueueAttributes) -> dict[str, Any]:
    queue = call.queue(request.queue_url)
    wanted = frozenset(request.attribute_names)
    for name in request.attribute_names:
        if name not in KNOWN:
            raise unknown(name)
    found = current(call, queue)
    if "All" in wanted or not wanted.isdisjoint(COUNTS):
        found |= _counts(call, queue)
    if "All" not in wanted:
        found = {name: text for name, text in found.items() if name in wanted}
    return {"Attributes": found} if found else {}


def _counts(call: Call, queue: Queue) -> dict[str, str]:
    visible = leased = 0
    for partition in call.broker.topics.led(queue.name, range(queue.topic.partitions)):
        try:
            measure = call.broker.queues.measure(Place(GROUP, queue.name, partition))
            replica = call.broker.topics.replica(queue.name, partition)
            beyond = max(0, replica.last_stable_offset - measure.end_offset)
            visible += sum(measure.ready) + measure.held + measure.replaying + beyond
            leased += sum(measure.leased) + measure.waiting
        except GoQueueError:  # nobody has received there; or it is out of service, and whoever receives is told
            visible += _all(call, queue.name, partition)
    delayed = call.broker.schedules.count(queue.name)
    return dict(zip(COUNTS, map(str, (visible, leased, delayed)), strict=True))


def _all(call: Call, name: str, partition: int) -> int:
    try:
        replica = call.broker.topics.replica(name, partition)
    except GoQueueError:
        return 0
    return replica.last_stable_offset - replica.start_offset


async def set_queue_attributes(call: Call, request: SetQueueAttributes) -> dict[str, Any]:
    queue = call.queue(request.queue_url)
    asked = need(request.attributes, "Attributes")
    if "FifoQueue" in asked:
        raise unknown("FifoQueue")
    kept, redrive = check_attributes(call, queue.name, asked, queue.is_fifo)
    labels = dict(queue.labels) | {name: kept[name] for name in KEPT if name in kept}
    check_throughput(labels)
    labels[MODIFIED] = str(call.broker.clock.now_ms() // SECOND_MS)
    changes: dict[str, str | None] = {**options_of(kept), **redrive, ATTRIBUTES: write_label(labels)}
    if "MessageRetentionPeriod" in kept:
        changes["expired.messages"] = "drop"
    await call.change_topic(SetOptions(queue.name, changes))
    return {}


async def list_queue_tags(call: Call, request: OfQueue) -> dict[str, Any]:
    tags = call.queue(request.queue_url).tags
    return {"Tags": tags} if tags else {}


async def tag_queue(call: Call, request: TagQueue) -> dict[str, Any]:
    queue = call.queue(request.queue_url)
    tags = queue.tags | need(request.tags, "Tags")
    check_tags(tags)
    await call.change_topic(SetOptions(queue.name, {TAGS: write_label(tags)}))
    return {}


async def untag_queue(call: Call, request: UntagQueue) -> dict[str, Any]:
    queue = call.queue(request.queue_url)
    gone = frozenset(need(request.tag_keys, "TagKeys"))
    tags = {name: text for name, text in queue.tags.items() if name not in gone}
    await call.change_topic(SetOptions(queue.name, {TAGS: write_label(tags)}))
    return {}
