"""Topics: made, looked at, configured, deleted."""

import asyncio
from functools import partial
from uuid import UUID

from goqueue.doors.http.call import Call
from goqueue.doors.http.operation import Handlers
from goqueue.doors.http.permissions import ALTERS_TOPIC_CONFIGS, CREATES_TOPIC, DELETES_TOPIC, DESCRIBES_TOPIC
from goqueue.machines.controller_commands import CreateTopic, DeleteTopic, SetOptions
from goqueue.records.replays import Where
from goqueue.wire.rest.operations import topics as operations
from goqueue.wire.rest.topics import (
    NewTopic,
    Partition,
    PartitionOffsets,
    Partitions,
    TopicChange,
    TopicCreated,
    TopicDeleted,
    TopicDetails,
    TopicNames,
    TopicPath,
    Trim,
    Trimmed,
    TrimmedPartition,
)

HOUR_MS = 3_600_000

topics = Handlers()


@topics.handles(operations.CREATE_TOPIC, CREATES_TOPIC)
async def create_topic(call: Call, body: NewTopic) -> TopicCreated:
    options = {name: str(value) for name, value in (body.options or {}).items()}
    if body.retention_hours is not None and body.retention_hours > 0:
        options.setdefault("retention.ms", str(body.retention_hours * HOUR_MS))
    partitions = body.num_partitions if (body.num_partitions or 0) > 0 else call.broker.default_partitions
    assert partitions is not None
    command = CreateTopic(body.name, call.broker.topics.new_id(), partitions, options)
    await call.order(partial(call.broker.topics.submit, command))
    return TopicCreated(name=body.name, partitions=partitions, created=True)


@topics.handles(operations.LIST_TOPICS, DESCRIBES_TOPIC)
async def list_topics(call: Call) -> TopicNames:
    return TopicNames(topics=sorted(call.broker.topics.image.topics))


@topics.handles(operations.DESCRIBE_TOPIC, DESCRIBES_TOPIC)
async def describe_topic(call: Call, path: TopicPath) -> TopicDetails:
    topic = call.topic(path.topic)
    replicas = call.replicas(topic)
    return TopicDetails(
        name=topic.name,
        id=str(UUID(bytes=topic.id)),
        partitions=topic.partitions,
        total_messages=sum(each.high_watermark - each.start_offset for each in replicas.values()),
        total_size_bytes=sum(each.size_bytes for each in replicas.values()),
        partition_offsets={
            str(number): PartitionOffsets(
                earliest=each.start_offset, latest=each.high_watermark - 1, next=each.high_watermark
            )
            for number, each in replicas.items()
        },
        options=dict(topic.overrides),
    )


@topics.handles(operations.CONFIGURE_TOPIC, ALTERS_TOPIC_CONFIGS)
async def configure_topic(call: Call, path: TopicPath, body: TopicChange) -> TopicDetails:
    topic = call.topic(path.topic)
    changes = {name: None if value is None else str(value) for name, value in body.options.items()}
    await call.order(partial(call.broker.topics.submit, SetOptions(topic.name, changes)))
    return await describe_topic(call, path)


@topics.handles(operations.TRIM_TOPIC, DELETES_TOPIC)
async def trim_topic(call: Call, path: TopicPath, body: Trim) -> Trimmed:
    topic = call.topic(path.topic)
    where = Where.parse(body.before, call.now_ms)
    places = call.led(topic) if body.partition is None else [body.partition]
    offsets = {number: call.broker.replays.resolve(topic.name, number, where) for number in places}
    trimmed = []
    for number, offset in offsets.items():
        replica = call.broker.topics.replica(topic.name, number)
        before = replica.start_offset
        if not body.dry_run:
            replica.delete_before(offset)
            await asyncio.sleep(0)  # each takes a sync: others want to be served in between
        trimmed.append(TrimmedPartition(partition=number, before=before, after=max(before, offset)))
    return Trimmed(topic=topic.name, dry_run=body.dry_run, partitions=trimmed)


@topics.handles(operations.DELETE_TOPIC, DELETES_TOPIC)
async def delete_topic(call: Call, path: TopicPath) -> TopicDeleted:
    await call.order(partial(call.broker.topics.submit, DeleteTopic(path.topic)))
    return TopicDeleted(deleted=True, name=path.topic)


def _node(node_id: int) -> str:
    return f"node-{node_id}"


@topics.handles(operations.LIST_PARTITIONS, DESCRIBES_TOPIC)
async def list_partitions(call: Call, path: TopicPath) -> Partitions:
    topic = call.topic(path.topic)
    return Partitions(
        topic=topic.name,
        partitions=[
            Partition(
                partition=number,
                leader=_node(placement.leader),
                replicas=[_node(each) for each in placement.replicas],
                isr=[_node(each) for each in placement.isr],
                version=placement.epoch,
            )
            for number, placement in enumerate(topic.placements)
        ],
    )
