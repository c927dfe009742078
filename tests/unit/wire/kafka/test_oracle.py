"""kio, which is generated from the protocol's own definitions, must read what we write, write the same bytes and mean
the same by them, for every class and version that it has."""

import re
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from io import BytesIO
from typing import Any, get_args
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_entity_schema
from kio.schema.index import LoadableEntityType, schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType
from kio.static.protocol import Entity

from goqueue.wire.kafka.codec import decode, encode
from goqueue.wire.kafka.messages.describe_groups import DeleteGroupsRequest, DeleteGroupsResponse
from goqueue.wire.kafka.messages.metadata import ApiVersionsRequest, ApiVersionsResponse
from goqueue.wire.kafka.messages.transactions import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from goqueue.wire.kafka.notation import NO_UUID, Message
from goqueue.wire.kafka.schema import Field, fields_of
from tests.layers import rows_in_layers
from tests.unit.wire.kafka.samples import ALL_VERSIONS, is_ours, messages, thorough

KIO_LACKS = {
    (ApiVersionsRequest, 5),
    (ApiVersionsResponse, 5),
    (DeleteGroupsRequest, 3),
    (DeleteGroupsResponse, 3),
    (TxnOffsetCommitRequest, 6),
    (TxnOffsetCommitResponse, 6),
}
"""Newer than kio 0.6.5; test_golden.py has bytes for them."""
RENAMED_SINCE_KIO = {("generation_id_or_member_epoch", "generation_id")}
EPOCH = datetime.fromtimestamp(0, UTC)


def place_in_kio(message: type[Message]) -> tuple[str, LoadableEntityType]:
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", message.__name__).lower()
    if name.endswith("_request"):
        return name.removesuffix("_request"), EntityType.request
    if name.endswith("_response"):
        return name.removesuffix("_response"), EntityType.response
    return name, EntityType.data


def is_in_kio(message: type[Message], version: int) -> bool:
    name, kind = place_in_kio(message)
    return kind in schema_name_map[name].get(version, {})


@cache
def kio_class(message: type[Message], version: int) -> type[Entity]:
    name, kind = place_in_kio(message)
    return load_entity_schema(name, version, kind)


IN_KIO = [(message, version) for message, version in ALL_VERSIONS if is_in_kio(message, version)]
EVERY_SECOND = [*IN_KIO[::2], *IN_KIO[1::2]]
each_in_kio = pytest.mark.parametrize(("message", "version"), rows_in_layers(EVERY_SECOND, first=len(IN_KIO[::2])))


def present_fields(message: type[Message], version: int) -> list[Field]:
    return [field for field in fields_of(message) if version in field.versions and not is_ours(field)]


def ours_as_plain(message: Message, version: int) -> list[Any]:
    return [
        field_as_plain(field, getattr(message, field.name), version) for field in present_fields(type(message), version)
    ]


def field_as_plain(field: Field, value: Any, version: int) -> Any:
    if isinstance(value, list):
        return [field_as_plain(field, each, version) for each in value]
    if isinstance(value, Message):
        return ours_as_plain(value, version)
    if value is None and field.tag is not None and field.message is not None:
        return ours_as_plain(field.message(), version)
    if field.kind == "uuid" and value == NO_UUID:
        return None
    if field.name == "log_append_time_ms" and value == -1:
        return None
    return value


def kio_as_plain(value: Any) -> Any:
    if is_dataclass(value):
        return [kio_as_plain(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, tuple):
        return [kio_as_plain(each) for each in value]
    if isinstance(value, timedelta):
        return value // timedelta(milliseconds=1)
    if isinstance(value, datetime):
        return (value - EPOCH) // timedelta(milliseconds=1)
    return value.bytes if isinstance(value, UUID) else value


def test_only_the_newest_versions_are_unknown_to_kio() -> None:
    assert set(ALL_VERSIONS) - set(IN_KIO) == KIO_LACKS


@each_in_kio
@thorough(6)
@given(data=st.data())
def test_kio_reads_and_writes_the_same(message: type[Message], version: int, data: st.DataObject) -> None:
    original = data.draw(messages(message, version))
    ours = encode(original, version)
    theirs = kio_class(message, version)
    entity, size = entity_reader(theirs)(ours, 0)
    assert size == len(ours)
    assert kio_as_plain(entity) == ours_as_plain(original, version)
    written = BytesIO()
    entity_writer(theirs)(written, entity)
    assert written.getvalue() == ours
    assert decode(message, version, ours) == (original, len(ours))


@pytest.mark.parametrize("message", dict.fromkeys(message for message, _ in IN_KIO))
def test_names_tags_and_defaults_are_the_protocols(message: type[Message]) -> None:
    for _, version in (each for each in IN_KIO if each[0] is message):
        check_fields(message, kio_class(message, version), version)


def check_fields(message: type[Message], theirs: Any, version: int) -> None:
    ours = present_fields(message, version)
    assert len(ours) == len(fields(theirs))
    for field, other in zip(ours, fields(theirs)):
        assert (field.name, other.name) in RENAMED_SINCE_KIO or field.name in {other.name, f"{other.name}_ms"}
        assert field.tag == other.metadata.get("tag")
        if other.default is not MISSING:
            default = [] if field.default is list else field.default
            assert field_as_plain(field, default, version) == kio_as_plain(other.default)
        if field.message is not None:
            check_fields(field.message, nested_class(other.type), version)


def nested_class(annotation: Any) -> Any:
    """X of X, X | None, tuple[X, ...] and tuple[X, ...] | None."""
    if is_dataclass(annotation):
        return annotation
    return next(filter(None, map(nested_class, get_args(annotation))), None)
