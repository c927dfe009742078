"""Topics: made, deleted, grown, emptied, configured."""

import secrets
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from goqueue.broker.topics import AddPartitions, CreateTopic, DeleteTopic, Result, SetOptions, code_of
from goqueue.doors.kafka.handlers.group_configs import GROUP_RESOURCE, GroupChange, change_group, group_options
from goqueue.doors.kafka.request import Request
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.topics import Topic, TopicOptions, dotted
from goqueue.wire.kafka.messages.configs import (
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    IncrementalAlterConfigsResponse,
)
from goqueue.wire.kafka.messages.topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from goqueue.wire.kafka.notation import NO_UUID

USE_DEFAULT = -1
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
SOURCE_TOPIC, SOURCE_BROKER, SOURCE_DEFAULT = 1, 4, 5
HTTP_ADDRESS = "goqueue.http.address"
"""An option of a broker that only says where else it can be reached."""
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
CONFIG_TYPES = {bool: 1, str: 2, int: 5, float: 6}
END_OF_LOG = -1


def submit_all(request: Request, commands: list[Any], on_results: Callable[[list[Result]], None]) -> None:
    """Decide each command, refused ones included (a Result is its own answer), and hand over the results in order."""
    results: list[Result | None] = [None] * len(commands)
    waiting = len(commands) + 1

    def done() -> None:
        nonlocal waiting
        waiting -= 1
        if not waiting:
            on_results([result for result in results if result is not None])

    def put(number: int, reply: Any) -> None:
        results[number] = Result(code_of(reply), str(reply)) if isinstance(reply, GoQueueError) else reply
        done()

    for number, command in enumerate(commands):
        if isinstance(command, Result):
            put(number, command)
        elif isinstance(command, GroupChange):
            change_group(request, command, lambda result, number=number: put(number, result))  # type: ignore[misc]
        else:
            request.broker.topics.submit(command, lambda reply, number=number: put(number, reply))  # type: ignore[misc]
    done()


def handle_create_topics(request: Request) -> None:
    message = request.message
    names = [topic.name for topic in message.topics]
    commands = [
        Result(Code.INVALID_REQUEST, "the topic is named twice")
        if names.count(topic.name) > 1
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
                created.replication_factor = 1
                created.configs = [
                    CreatableTopicConfigs(one.name, one.value, False, one.config_source)
                    for one in _options(result.topic, None, request.broker.topics.defaults)
                ]
            response.topics.append(created)
        request.answer(response)

    submit_all(request, commands, answer)


def _create_command(request: Request, topic: CreatableTopic) -> CreateTopic | Result:
    partitions = topic.num_partitions
    if topic.assignments:
        if any(one.broker_ids != [request.broker.identity.node_id] for one in topic.assignments):
            return Result(Code.INVALID_REPLICA_ASSIGNMENT, "this cluster has one node")
        partitions = len(topic.assignments)
    elif topic.replication_factor not in (USE_DEFAULT, 1):
        return Result(Code.INVALID_REPLICATION_FACTOR, f"{topic.replication_factor} copies, but there is one node")
    if partitions == USE_DEFAULT:
        partitions = request.broker.default_partitions
    overrides = {config.name: config.value for config in topic.configs if config.value is not None}
    return CreateTopic(topic.name, secrets.token_bytes(16), partitions, overrides, request.message.validate_only)


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
        elif topic.is_internal:
            commands.append(Result(Code.INVALID_TOPIC_EXCEPTION, "internal topics cannot be deleted"))
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
    commands = [AddPartitions(topic.name, topic.count, message.validate_only) for topic in message.topics]

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


def handle_delete_records(request: Request) -> None:
    response = DeleteRecordsResponse()
    for topic in request.message.topics:
        answered = DeleteRecordsTopicResult(topic.name)
        response.topics.append(answered)
        for wanted in topic.partitions:
            result = DeleteRecordsPartitionResult(wanted.partition_index, -1)
            answered.partitions.append(result)
            try:
                replica = request.broker.topics.replica(topic.name, wanted.partition_index)
                offset = replica.high_watermark if wanted.offset == END_OF_LOG else wanted.offset
                replica.delete_before(offset)
                result.low_watermark = replica.start_offset
            except GoQueueError as error:
                result.error_code = code_of(error)
    request.answer(response)


def _options(topic: Topic, names: list[str] | None, defaults: TopicOptions) -> list[DescribeConfigsResourceResult]:
    options = topic.options(defaults)
    found = []
    for each in fields(TopicOptions):
        name, value = dotted(each.name), getattr(options, each.name)
        if names is None or name in names:
            source = SOURCE_TOPIC if name in topic.overrides else SOURCE_DEFAULT
            kind = CONFIG_TYPES[type(value)]
            found.append(DescribeConfigsResourceResult(name, str(value), False, source, config_type=kind))
    return found


def _of_broker(request: Request, names: list[str] | None) -> list[DescribeConfigsResourceResult]:
    address = request.endpoint.http
    if not address or (names is not None and HTTP_ADDRESS not in names):
        return []
    kind = CONFIG_TYPES[str]
    return [DescribeConfigsResourceResult(HTTP_ADDRESS, address, True, SOURCE_BROKER, config_type=kind)]


def handle_describe_configs(request: Request) -> None:
    response = DescribeConfigsResponse()
    image = request.broker.topics.image
    for asked in request.message.resources:
        result = DescribeConfigsResult(
            error_message=None, resource_type=asked.resource_type, resource_name=asked.resource_name
        )
        response.results.append(result)
        topic = image.topics.get(asked.resource_name)
        if asked.resource_type == TOPIC_RESOURCE and topic is not None:
            result.configs = _options(topic, asked.configuration_keys or None, request.broker.topics.defaults)
        elif asked.resource_type == TOPIC_RESOURCE:
            result.error_code, result.error_message = Code.UNKNOWN_TOPIC_OR_PARTITION, "there is no such topic"
        elif asked.resource_type == GROUP_RESOURCE:
            result.configs = group_options(request, asked.resource_name, asked.configuration_keys or None)
        elif asked.resource_type == BROKER_RESOURCE:
            result.configs = _of_broker(request, asked.configuration_keys or None)
        else:
            result.error_code, result.error_message = (
                Code.INVALID_REQUEST,
                "only topics, groups and brokers have options",
            )
    request.answer(response)


def handle_alter_configs(request: Request) -> None:
    commands = []
    for resource in request.message.resources:
        changes = {config.name: config.value for config in resource.configs}
        commands.append(_set_options(request, resource, changes, replace_all=True))
    _answer_alter(request, commands, AlterConfigsResponse())


def handle_incremental_alter_configs(request: Request) -> None:
    commands: list[SetOptions | GroupChange | Result] = []
    for resource in request.message.resources:
        if any(config.config_operation not in (SET, DELETE) for config in resource.configs):
            commands.append(Result(Code.INVALID_REQUEST, "no option here is a list"))
            continue
        changes = {one.name: one.value if one.config_operation == SET else None for one in resource.configs}
        commands.append(_set_options(request, resource, changes, replace_all=False))
    _answer_alter(request, commands, IncrementalAlterConfigsResponse())


def _set_options(
    request: Request, resource: Any, changes: dict[str, str | None], *, replace_all: bool
) -> SetOptions | GroupChange | Result:
    if resource.resource_type == GROUP_RESOURCE:
        return GroupChange(resource.resource_name, changes, replace_all, request.message.validate_only)
    if resource.resource_type != TOPIC_RESOURCE:
        return Result(Code.INVALID_REQUEST, "only the options of topics and groups can be changed")
    return SetOptions(resource.resource_name, changes, replace_all, request.message.validate_only)


def _answer_alter(
    request: Request, commands: list[Any], response: AlterConfigsResponse | IncrementalAlterConfigsResponse
) -> None:
    def answer(results: list[Result]) -> None:
        for resource, result in zip(request.message.resources, results):
            response.responses.append(
                AlterConfigsResourceResponse(
                    result.code, result.message or None, resource.resource_type, resource.resource_name
                )
            )
        request.answer(response)

    submit_all(request, commands, answer)
