"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs: the options of topics, groups and this broker."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from goqueue.doors.kafka.broker_options import HTTP_ADDRESS, broker_options, loggers
from goqueue.doors.kafka.config_entries import (
    BROKER_RESOURCE,
    GROUP_RESOURCE,
    LOGGER_RESOURCE,
    METRICS_RESOURCE,
    TOPIC_RESOURCE,
    Asked,
    Option,
)
from goqueue.doors.kafka.handlers.group_configs import GroupChange, group_options
from goqueue.doors.kafka.handlers.topics import submit_all
from goqueue.doors.kafka.request import Request
from goqueue.doors.kafka.topic_options import default_of, options_of, type_of
from goqueue.machines.controller_commands import ListChange, Result, SetOptions
from goqueue.model.access import THE_CLUSTER, Kind
from goqueue.model.codes import Code
from goqueue.model.kept_options import KEPT_OPTIONS, OptionType
from goqueue.model.refusal import Refused
from goqueue.model.topics import OPTION_NAMES
from goqueue.wire.kafka.messages.configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    IncrementalAlterableConfig,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)

THROTTLES = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)
"""Of a broker: taken and not kept, since nothing is replicated. kafka-reassign-partitions sets and deletes them."""
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
Change = SetOptions | GroupChange | Result


# -- described


def handle_describe_configs(request: Request) -> None:
    response = DescribeConfigsResponse()

    def take(resource: DescribeConfigsResource) -> None:
        result = DescribeConfigsResult(
            error_message=None, resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        response.results.append(result)
        try:
            describe = DESCRIBED.get(resource.resource_type)
            if describe is None:
                raise _unknown(resource.resource_type)
            result.configs = Asked(request, resource).show(describe(request, resource.resource_name))
        except Refused as refused:
            result.error_code, result.error_message = refused.code, str(refused)

    request.each(request.message.resources, take, lambda: request.answer(response))


def _describe_topic(request: Request, name: str) -> list[Option]:
    topics = request.broker.topics
    topic = topics.image.topics.get(name)
    if topic is None:
        raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
    return list(options_of(topic, topics.defaults))


def _describe_broker(request: Request, name: str) -> list[Option]:
    if name:
        _check_broker(request, name)
        return broker_options(request)
    # What was set for all brokers while they ran: nothing can be. Spark asks here for the HTTP address.
    return [option for option in broker_options(request) if option.name == HTTP_ADDRESS]


def _describe_loggers(request: Request, name: str) -> list[Option]:
    _check_broker(request, name)
    return loggers(request)


def _describe_group(request: Request, name: str) -> list[Option]:
    if not name:
        raise Refused(Code.INVALID_REQUEST, "a group must be named")
    return group_options(request, name)


DESCRIBED: dict[int, Callable[[Request, str], list[Option]]] = {
    TOPIC_RESOURCE: _describe_topic,
    BROKER_RESOURCE: _describe_broker,
    LOGGER_RESOURCE: _describe_loggers,
    GROUP_RESOURCE: _describe_group,
}


def _unknown(kind: int) -> Refused:
    no_metrics = "client metrics are not collected here"
    return Refused(Code.INVALID_REQUEST, no_metrics if kind == METRICS_RESOURCE else f"no resource has the type {kind}")


def _check_broker(request: Request, name: str) -> None:
    request.broker.admit(Kind.CLUSTER, THE_CLUSTER)
    node_id = request.broker.identity.node_id
    if name != str(node_id):
        raise Refused(Code.INVALID_REQUEST, f"this is broker {node_id}, not {name[:40]!r}")


# -- changed


def handle_alter_configs(request: Request) -> None:
    def change(resource: AlterConfigsResource) -> Change:
        _check_named_once([config.name for config in resource.configs])
        values = {config.name: _not_null(config.name, config.value) for config in resource.configs}
        return _change(request, resource, dict(values), replaces_all=True)

    _alter(request, change, AlterConfigsResponse())


def handle_incremental_alter_configs(request: Request) -> None:
    def change(resource: IncrementalAlterConfigsResource) -> Change:
        _check_named_once([config.name for config in resource.configs])
        changes = {config.name: _operation(request, resource, config) for config in resource.configs}
        return _change(request, resource, changes, replaces_all=False)

    _alter(request, change, IncrementalAlterConfigsResponse())


def _alter(
    request: Request,
    change: Callable[[Any], Change],
    response: AlterConfigsResponse | IncrementalAlterConfigsResponse,
) -> None:
    resources = request.message.resources
    counts = Counter((one.resource_type, one.resource_name) for one in resources)
    commands: list[Change] = []
    for resource in resources:
        try:
            if counts[resource.resource_type, resource.resource_name] > 1:
                raise Refused(Code.INVALID_REQUEST, "the resource is named twice")
            commands.append(change(resource))
        except Refused as refused:
            commands.append(Result(refused.code, str(refused)))

    def answer(results: list[Result]) -> None:
        for resource, result in zip(resources, results, strict=True):
            response.responses.append(
                AlterConfigsResourceResponse(
                    result.code, result.message or None, resource.resource_type, resource.resource_name
                )
            )
        request.answer(response)

    submit_all(request, commands, answer)


def _check_named_once(names: list[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise Refused(Code.INVALID_REQUEST, f"options that are named twice: {', '.join(twice)}")


def _not_null(name: str, value: str | None) -> str:
    if value is None:
        raise Refused(Code.INVALID_REQUEST, f"{name} has no value")
    return value


def _operation(
    request: Request, resource: IncrementalAlterConfigsResource, config: IncrementalAlterableConfig
) -> str | ListChange | None:
    name, operation = config.name, config.config_operation
    if operation == DELETE:
        return None
    text = _not_null(name, config.value)
    if operation == SET:
        return text
    if operation not in (APPEND, SUBTRACT):
        raise Refused(Code.INVALID_REQUEST, f"{operation} is no operation: 0 sets, 1 deletes, 2 appends, 3 subtracts")
    if resource.resource_type == BROKER_RESOURCE and name not in THROTTLES:
        return text  # which is refused because it is the broker's, whether it is a list or not
    is_topic_option = resource.resource_type == TOPIC_RESOURCE and (name in OPTION_NAMES or name in KEPT_OPTIONS)
    if not is_topic_option or type_of(name) is not OptionType.LIST:
        raise Refused(Code.INVALID_CONFIG, f"{name} is no list: nothing can be appended to it or subtracted from it")
    return ListChange(text, operation == APPEND, default_of(name, request.broker.topics.defaults))


def _change(
    request: Request,
    resource: AlterConfigsResource | IncrementalAlterConfigsResource,
    changes: dict[str, str | ListChange | None],
    *,
    replaces_all: bool,
) -> Change:
    kind, name = resource.resource_type, resource.resource_name
    check_only: bool = request.message.validate_only
    if kind == TOPIC_RESOURCE:
        return SetOptions(name, changes, replaces_all, check_only)
    if kind == GROUP_RESOURCE:
        texts = {option: text for option, text in changes.items() if not isinstance(text, ListChange)}
        return GroupChange(name, texts, replaces_all, check_only)
    if kind in (BROKER_RESOURCE, LOGGER_RESOURCE):
        request.broker.admit(Kind.CLUSTER, THE_CLUSTER)
        if name or kind == LOGGER_RESOURCE:
            _check_broker(request, name)
        given = [option for option, text in changes.items() if text is not None and option not in THROTTLES]
        if given:  # to take back what was never set is no error: tools clear throttles that way
            raise Refused(
                Code.INVALID_REQUEST,
                f"cannot be changed while the broker runs: {', '.join(given)}; change its settings and start it again",
            )
        return Result()
    raise _unknown(kind)
