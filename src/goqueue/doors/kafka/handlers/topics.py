"""Topics: made, deleted, grown, emptied, configured."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from goqueue.doors.kafka.handlers.group_configs import GroupChange, change_group
from goqueue.doors.kafka.request import Request
from goqueue.doors.kafka.topic_options import options_of
from goqueue.machines.controller_commands import AddPartitions, CreateTopic, DeleteTopic, Result
from goqueue.model.codes import Code
from goqueue.model.error_codes import code_of
from goqueue.model.errors import GoQueueError
from goqueue.wire.kafka.messages.topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from goqueue.wire.kafka.notation import NO_UUID

USE_DEFAULT = -1
END_OF_LOG = -1
DELETE = "delete"


def submit_all(request: Request, commands: list[Any], on_results: Callable[[list[Result]], None]) -> None:
    """Decide each command, refused ones included (a Result is its own answer), and hand over the results in order."""
    results: list[Result | None] = [None] * len(commands)
    waiting = len(commands) + 1

    def done() -> None:
        nonlocal waiting
        waiting -= 1
        if not waiting:
            on_results([result for result in results if result is not None])

    def put(number: int, reply: Result | GoQueueError) -> None:
        results[number] = Result(code_of(reply), str(reply)) if isinstance(reply, GoQueueError) else reply
        done()

    def submit(number: int) -> None:
        command = commands[number]
        if isinstance(command, Result):
            put(number, command)
        elif isinstance(command, GroupChange):
            change_group(request, command, lambda result: put(number, result))
        else:
            request.broker.topics.submit(command, lambda reply: put(number, reply))

    request.each(range(len(commands)), submit, done)


def handle_create_topics(request: Request) -> None:
    message = request.message
    names = [topic.name for topic in message.topics]
    counts = Counter(names)
    commands = [
        Result(Code.INVALID_REQUEST, "the topic is named twice")
        if counts[topic.name] > 1
        else _create_command(request, topic)
        for topic in message.topics
    ]

    def answer(results: list[Result]) -> None:
        response = CreateTopicsResponse()
        for name, result in zip(names, results):
            created = CreatableTopicResult(name, error_code=result.code, error_message=result.message or None)
            if result.topic is not None:
                created.topic_id = NO_UUID if message.validate_only else result.topic.id
                created.num_partitions = result.topic.partitions
                created.replication_factor = result.topic.replication_factor
                created.configs = [
                    CreatableTopicConfigs(one.name, one.chosen[0].value, False, one.chosen[0].source)
                    for one in options_of(result.topic, request.broker.topics.defaults)
                ]
            response.topics.append(created)
        request.answer(response)

    submit_all(request, commands, answer)


def _create_command(request: Request, topic: CreatableTopic) -> CreateTopic | Result:
    partitions, factor = topic.num_partitions, topic.replication_factor
    assignments = _assignments(topic)
    if sorted(one.partition_index for one in topic.assignments) != list(range(len(assignments))):
        return Result(Code.INVALID_REPLICA_ASSIGNMENT, "partitions are numbered from 0, without gaps")
    if assignments:
        me = request.broker.topics.image.nodes.get(request.broker.identity.node_id)
        if me is not None and me.peer is None and any(nodes != (me.node_id,) for nodes in assignments):
            return Result(Code.INVALID_REPLICA_ASSIGNMENT, "this cluster has one node")
        partitions, factor = len(assignments), USE_DEFAULT
    if factor != USE_DEFAULT and factor < 1:
        return Result(Code.INVALID_REPLICATION_FACTOR, f"{factor} copies: there must be one")
    if partitions == USE_DEFAULT:
        partitions = request.broker.default_partitions
    overrides: dict[str, str] = {}
    for config in topic.configs:
        if config.value is None:
            return Result(Code.INVALID_CONFIG, f"{config.name} has no value")
        overrides[config.name] = config.value
    topic_id = request.broker.topics.new_id()
    return CreateTopic(
        topic.name,
        topic_id,
        partitions,
        overrides,
        request.message.validate_only,
        replication_factor=0 if factor == USE_DEFAULT else factor,
        assignments=assignments,
    )


def _assignments(topic: CreatableTopic) -> tuple[tuple[int, ...], ...]:
    """The nodes of each partition, by its number."""
    return tuple(tuple(one.broker_ids) for one in sorted(topic.assignments, key=lambda one: one.partition_index))


def handle_delete_topics(request: Request) -> None:
    message = request.message
    asked = message.topics if request.version >= 6 else [DeleteTopicState(name) for name in message.topic_names]
    image = request.broker.topics.image
    found = [image.by_id(one.topic_id) if one.name is None else image.topics.get(one.name) for one in asked]
    commands: list[DeleteTopic | Result] = []
    for one, topic in zip(asked, found):
        if topic is None:
            code = Code.UNKNOWN_TOPIC_ID if one.name is None else Code.UNKNOWN_TOPIC_OR_PARTITION
            commands.append(Result(code, "there is no such topic"))
        else:
            commands.append(DeleteTopic(topic.name))

    def answer(results: list[Result]) -> None:
        response = DeleteTopicsResponse()
        for one, topic, result in zip(asked, found, results):
            name = topic.name if topic else one.name
            topic_id = topic.id if topic else one.topic_id
            response.responses.append(DeletableTopicResult(name, topic_id, result.code, result.message or None))
        request.answer(response)

    submit_all(request, commands, answer)


def handle_create_partitions(request: Request) -> None:
    message = request.message
    commands = [
        AddPartitions(
            topic.name,
            topic.count,
            message.validate_only,
            tuple(tuple(one.broker_ids) for one in topic.assignments or ()),
        )
        for topic in message.topics
    ]

    def answer(results: list[Result]) -> None:
        request.answer(
            CreatePartitionsResponse(
                results=[
                    CreatePartitionsTopicResult(topic.name, result.code, result.message or None)
                    for topic, result in zip(message.topics, results)
                ]
            )
        )

    submit_all(request, commands, answer)
