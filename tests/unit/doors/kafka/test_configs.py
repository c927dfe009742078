"""Options of topics, brokers and other resources as Kafka's tools ask for them and change them."""

from dataclasses import fields
from typing import Any

import pytest

from goqueue.model.codes import Code
from goqueue.model.kept_options import KEPT_OPTIONS, OptionType
from goqueue.model.option_words import OPTION_WORDS
from goqueue.model.topics import OPTION_NAMES, TopicOptions
from goqueue.wire.kafka.messages.configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from goqueue.wire.kafka.messages.quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    QuotaFilterComponent,
    ScramUserName,
)
from tests.unit.doors.kafka.share_members import House

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
FROM_TOPIC, STATIC, DEFAULT = 1, 4, 5


def ask(house: House, kind: int, name: str, *keys: str, version: int = 4, **wants: bool) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(kind, name, list(keys) or None)
    request = DescribeConfigsRequest([resource], **wants)
    (result,) = house.operator.call(request, version, DescribeConfigsResponse).results
    return result


def described(house: House, kind: int, name: str, *keys: str, **wants: Any) -> dict[str, DescribeConfigsResourceResult]:
    result = ask(house, kind, name, *keys, **wants)
    assert result.error_code == Code.NONE, result.error_message
    return {one.name: one for one in result.configs}


def alter(house: House, kind: int, name: str, *changes: tuple[str, int, str | None], check: bool = False) -> Code:
    resource = IncrementalAlterConfigsResource(kind, name, [IncrementalAlterableConfig(*one) for one in changes])
    request = IncrementalAlterConfigsRequest([resource], check)
    (result,) = house.operator.call(request, 1, IncrementalAlterConfigsResponse).responses
    return Code(result.error_code)


def replace_all(house: House, kind: int, name: str, **values: str | None) -> Code:
    configs = [AlterableConfig(option.replace("_", "."), text) for option, text in values.items()]
    request = AlterConfigsRequest([AlterConfigsResource(kind, name, configs)])
    (result,) = house.operator.call(request, 2, AlterConfigsResponse).responses
    return Code(result.error_code)


def own(house: House) -> dict[str, str | None]:
    found = described(house, TOPIC, "orders").values()
    return {one.name: one.value for one in found if one.config_source == FROM_TOPIC}


def test_every_option_is_shown_with_its_default_its_type_and_a_sentence() -> None:
    house = House()
    found = described(house, TOPIC, "orders", include_documentation=True)
    assert set(found) == {*OPTION_NAMES, *KEPT_OPTIONS} == set(OPTION_WORDS)
    assert {one.config_source for one in found.values()} == {DEFAULT}
    assert {name for name, one in found.items() if one.documentation != OPTION_WORDS[name]} == set()
    for name, kept in KEPT_OPTIONS.items():
        assert (found[name].value, found[name].config_type) == (kept.default, kept.type)
    assert found["cleanup.policy"].config_type == OptionType.LIST
    assert found["retention.ms"].config_type == OptionType.LONG
    assert found["max.message.bytes"].config_type == OptionType.INT
    assert len(found) == len(fields(TopicOptions)) + len(KEPT_OPTIONS)


def test_an_option_tells_who_chose_it_and_what_stands_behind_it_if_asked() -> None:
    house = House()
    assert alter(house, TOPIC, "orders", ("retention.ms", SET, "5"), ("flush.ms", SET, "7")) is Code.NONE
    found = described(house, TOPIC, "orders", "retention.ms", "flush.ms", include_synonyms=True)
    assert {name: [(each.name, each.value, each.source) for each in one.synonyms] for name, one in found.items()} == {
        "retention.ms": [("retention.ms", "5", FROM_TOPIC), ("log.retention.ms", "604800000", DEFAULT)],
        "flush.ms": [("flush.ms", "7", FROM_TOPIC), ("log.flush.interval.ms", str((1 << 63) - 1), DEFAULT)],
    }
    (plain,) = described(house, TOPIC, "orders", "retention.ms").values()
    assert (plain.synonyms, plain.documentation) == ([], None)


def test_options_that_have_no_effect_here_are_kept_and_shown() -> None:
    house = House()
    given = {name: kept.default for name, kept in KEPT_OPTIONS.items()} | {
        "compression.type": "zstd",
        "flush.messages": "1",
        "preallocate": "TRUE",
        "leader.replication.throttled.replicas": "0:1",
    }
    assert alter(house, TOPIC, "orders", *((name, SET, text) for name, text in given.items())) is Code.NONE
    assert own(house) == given | {"preallocate": "true"}


def test_taking_back_an_unknown_option_is_no_error_and_setting_one_is() -> None:
    house = House()
    assert alter(house, TOPIC, "orders", ("no.such", DELETE, None), ("flush.ms", SET, "1")) is Code.NONE
    assert alter(house, TOPIC, "orders", ("no.such", SET, "1"), ("flush.ms", SET, "2")) is Code.INVALID_CONFIG
    assert own(house) == {"flush.ms": "1"}


def test_items_are_appended_to_lists_and_subtracted_from_them() -> None:
    house = House()
    assert alter(house, TOPIC, "orders", ("cleanup.policy", APPEND, "compact")) is Code.NONE
    assert own(house) == {"cleanup.policy": "compact,delete"}
    assert alter(house, TOPIC, "orders", ("cleanup.policy", SUBTRACT, "delete")) is Code.NONE
    assert own(house) == {"cleanup.policy": "compact"}
    assert alter(house, TOPIC, "orders", ("cleanup.policy", SUBTRACT, "compact")) is Code.INVALID_CONFIG
    throttled = "leader.replication.throttled.replicas"
    assert alter(house, TOPIC, "orders", (throttled, APPEND, "0:1,1:1"), check=True) is Code.NONE
    assert alter(house, TOPIC, "orders", (throttled, APPEND, "0:1,1:1")) is Code.NONE
    assert alter(house, TOPIC, "orders", (throttled, SUBTRACT, "0:1")) is Code.NONE
    assert own(house) == {"cleanup.policy": "compact", throttled: "1:1"}
    for name in ("retention.ms", "lane.weights", "no.such"):
        assert alter(house, TOPIC, "orders", (name, APPEND, "1")) is Code.INVALID_CONFIG
    assert alter(house, GROUP, "g", ("share.auto.offset.reset", APPEND, "latest")) is Code.INVALID_CONFIG


@pytest.mark.parametrize(
    "changes",
    [
        [("flush.ms", SET, None)],
        [("flush.ms", 9, "1")],
        [("flush.ms", SET, "1"), ("flush.ms", DELETE, None)],
    ],
)
def test_a_change_that_says_nothing_clear_is_refused(changes: list[tuple[str, int, str | None]]) -> None:
    house = House()
    assert alter(house, TOPIC, "orders", *changes) is Code.INVALID_REQUEST
    assert own(house) == {}


def test_a_resource_that_is_named_twice_is_refused_twice() -> None:
    house = House()
    resource = IncrementalAlterConfigsResource(TOPIC, "orders", [IncrementalAlterableConfig("flush.ms", SET, "1")])
    answer = house.operator.call(IncrementalAlterConfigsRequest([resource] * 2), 1, IncrementalAlterConfigsResponse)
    assert [one.error_code for one in answer.responses] == [Code.INVALID_REQUEST] * 2
    assert own(house) == {}


def test_replacing_all_options_takes_no_null() -> None:
    house = House()
    assert replace_all(house, TOPIC, "orders", flush_ms="1", retention_ms="5") is Code.NONE
    assert replace_all(house, TOPIC, "orders", flush_ms=None) is Code.INVALID_REQUEST
    assert own(house) == {"flush.ms": "1", "retention.ms": "5"}
    assert replace_all(house, TOPIC, "orders", flush_ms="2") is Code.NONE
    assert own(house) == {"flush.ms": "2"}


def test_a_broker_shows_its_options_under_kafkas_names_and_none_can_be_changed() -> None:
    house = House()
    node_id = str(house.broker.broker.identity.node_id)
    found = described(house, BROKER, node_id, include_synonyms=True, include_documentation=True)
    assert {one.read_only for one in found.values()} == {True}
    assert {bool(one.documentation) for one in found.values()} == {True}
    assert (found["broker.id"].value, found["node.id"].value) == (node_id, node_id)
    retention = found["log.retention.ms"]
    assert (retention.value, retention.config_source, retention.config_type) == ("604800000", DEFAULT, OptionType.LONG)
    assert [(one.name, one.value, one.source) for one in retention.synonyms] == [
        ("log.retention.ms", "604800000", DEFAULT)
    ]
    assert found["log.cleanup.policy"].config_type == OptionType.LIST
    assert alter(house, BROKER, node_id, ("log.retention.ms", SET, "5")) is Code.INVALID_REQUEST
    assert alter(house, BROKER, node_id, ("log.cleanup.policy", APPEND, "compact")) is Code.INVALID_REQUEST
    assert replace_all(house, BROKER, node_id, log_retention_ms="5") is Code.INVALID_REQUEST
    assert alter(house, BROKER, node_id, ("leader.replication.throttled.rate", DELETE, None)) is Code.NONE
    assert alter(house, BROKER, "", ("leader.replication.throttled.rate", DELETE, None)) is Code.NONE
    assert alter(house, BROKER, node_id, ("follower.replication.throttled.rate", SET, "1000")) is Code.NONE
    assert described(house, BROKER, "") == {}


def test_a_broker_shows_the_level_that_it_logs_at() -> None:
    house = House()
    node_id = str(house.broker.broker.identity.node_id)
    assert {name: one.value for name, one in described(house, LOGGER, node_id).items()} == {"root": "INFO"}
    assert alter(house, LOGGER, node_id, ("root", SET, "DEBUG")) is Code.INVALID_REQUEST


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "nowhere", Code.UNKNOWN_TOPIC_OR_PARTITION),
        (BROKER, "77", Code.INVALID_REQUEST),
        (BROKER, "one", Code.INVALID_REQUEST),
        (LOGGER, "77", Code.INVALID_REQUEST),
        (LOGGER, "", Code.INVALID_REQUEST),
        (METRICS, "all", Code.INVALID_REQUEST),
        (GROUP, "", Code.INVALID_REQUEST),
        (0, "x", Code.INVALID_REQUEST),
        (99, "x", Code.INVALID_REQUEST),
    ],
)
def test_a_resource_that_is_not_there_has_a_code_and_a_reason(kind: int, name: str, code: Code) -> None:
    house = House()
    result = ask(house, kind, name)
    assert (result.error_code, bool(result.error_message), result.configs) == (code, True, [])
    if kind != GROUP:
        assert alter(house, kind, name, ("x", DELETE, None)) is code


def test_there_are_no_quotas_and_no_users_and_asking_for_them_is_no_error() -> None:
    house = House()
    component = QuotaFilterComponent("user", 2, None)
    quotas = house.operator.call(DescribeClientQuotasRequest([component]), 1, DescribeClientQuotasResponse)
    assert (quotas.error_code, quotas.entries) == (Code.NONE, [])
    everybody = DescribeUserScramCredentialsRequest(None)
    assert house.operator.call(everybody, 0, DescribeUserScramCredentialsResponse).results == []
    one = DescribeUserScramCredentialsRequest([ScramUserName("ada")])
    (result,) = house.operator.call(one, 0, DescribeUserScramCredentialsResponse).results
    assert (result.user, result.error_code) == ("ada", Code.RESOURCE_NOT_FOUND)
