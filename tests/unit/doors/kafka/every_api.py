"""A request of every API that the door offers, made from the protocol's own schema: a new one cannot be forgotten."""

from collections.abc import Mapping
from typing import Any

from goqueue.doors.kafka.handlers.table import HANDLERS
from goqueue.wire.kafka.apis import APIS
from goqueue.wire.kafka.notation import Message
from goqueue.wire.kafka.schema import Field, fields_of
from tests.brokers import data

OFFERED = sorted((api for key, api in APIS.items() if key in HANDLERS), key=lambda api: api.key)
TOPIC = "orders"
TOPIC_ID = TOPIC.encode().ljust(16, b".")
GROUP, MEMBER, TRANSACTION = "g", "m", "tx"

BY_NAME: dict[str, Any] = {
    "topic": TOPIC,
    "name": TOPIC,
    "topic_name": TOPIC,
    "topic_names": TOPIC,
    "topic_id": TOPIC_ID,
    "subscribed_topic_names": TOPIC,
    "resource_name": TOPIC,
    "resource_type": 2,
    "group_id": GROUP,
    "groups": GROUP,
    "group_ids": GROUP,
    "groups_names": GROUP,
    "coordinator_keys": GROUP,
    "member_id": MEMBER,
    "transactional_id": TRANSACTION,
    "transactional_ids": TRANSACTION,
    "v3_and_below_transactional_id": TRANSACTION,
    "partitions": 0,
    "partition_indexes": 0,
    "num_partitions": 1,
    "replication_factor": 1,
    "count": 2,
    "session_timeout_ms": 10_000,
    "rebalance_timeout_ms": 10_000,
    "transaction_timeout_ms": 10_000,
    "max_wait_ms": 100,
    "min_bytes": 1,
    "max_bytes": 1_000_000,
    "max_records": 10,
    "partition_max_bytes": 1_000_000,
    "fetch_offset": 0,
    "acks": -1,
    "acknowledge_types": 1,
    "protocol_type": "consumer",
    "validate_only": True,
}
"""What is asked about, by the name of the field: of an array, its one element."""
LEFT_OUT = {"group_instance_id", "subscribed_topic_regex", "server_assignor", "assignments", "replicas", "configs"}
BY_KIND: dict[str, Any] = {"bool": False, "string": "", "bytes": b"", "uuid": bytes(16)}


def sample(message: type[Message], version: int, names: Mapping[str, Any] = BY_NAME, **values: Any) -> Any:
    """One that can be read; `values` replace what is usual, by the name of the field."""
    made = message()
    for field in fields_of(message):
        if version in field.versions and field.name in values:
            setattr(made, field.name, values[field.name])
        elif version in field.versions and field.tag is None and field.name not in LEFT_OUT:
            setattr(made, field.name, _value(field, version, names, values))
    return made


def _value(field: Field, version: int, names: Mapping[str, Any], values: dict[str, Any]) -> Any:
    if field.message is not None:
        one: Any = sample(field.message, version, names, **values)
    elif field.kind == "records":
        one = data(b"x", key=b"k")
    else:
        one = names.get(field.name, field.default if not field.is_array else None)
        if one is None and version in field.null_versions:
            return None
        if one is None:
            one = BY_KIND.get(field.kind, 0)
    return [one] if field.is_array else one
