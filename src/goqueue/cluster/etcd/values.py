"""Values of the metadata as they stand in etcd. They are JSON, so that a person with a shell can read them, and each
has the version of its form, `v`: what is written in a later form than is known here may mean anything.
"""

from typing import Any, Final, TypeVar

import msgspec

from goqueue.cluster.accounts import AccountKey, AccountValue
from goqueue.cluster.etcd.account_forms import ACCOUNT_FORMS, account_in_json
from goqueue.cluster.etcd.keys import MetadataUnreadable, key_path
from goqueue.cluster.etcd.port import KeyValue
from goqueue.model.metadata import (
    ClusterKey,
    ClusterValue,
    GoneKey,
    GoneValue,
    GroupKey,
    GroupValue,
    Key,
    LiveKey,
    NodeKey,
    NodeValue,
    PartitionKey,
    ProducerIdsKey,
    ProducerIdsValue,
    RemovedKey,
    RemovedValue,
    ScheduleKey,
    ScheduleValue,
    TopicKey,
    TopicValue,
    Value,
)
from goqueue.model.placements import HostPort, Lost, NodeInfo, Placement
from goqueue.model.secret import hides

VERSION: Final = 1
"""The highest form of a value that is known here."""

MAKING, LIVE, DELETING = "making", "live", "deleting"


class _Json(msgspec.Struct):
    v: int


@hides("secret")
class _Cluster(msgspec.Struct):
    v: int
    id: str
    secret: str
    groups: int
    transactions: int
    format: int = 1
    halted: str = ""
    recoveries: int = 0


class _Node(msgspec.Struct):
    v: int
    directory: str
    rack: str | None = None
    wanted: str = "in"


class _Live(msgspec.Struct):
    v: int
    directory: str
    boot: str
    started: int
    rack: str | None = None
    formats: tuple[int, int] = (1, 1)
    version: str = ""
    peer: str | None = None
    kafka: str | None = None
    http: str | None = None
    grpc: str | None = None
    listeners: dict[str, str] | msgspec.UnsetType = msgspec.UNSET


class _Topic(msgspec.Struct):
    v: int
    id: str
    partitions: int
    replication_factor: int
    state: str
    overrides: dict[str, str]


class _Lost(msgspec.Struct):
    at: int
    leader: int
    offset: int
    why: str


class _Partition(msgspec.Struct):
    v: int
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    incarnation: int
    epoch: int
    lost: tuple[_Lost, ...] = ()


class _Gone(msgspec.Struct):
    v: int
    name: str
    at: int


class _Removed(msgspec.Struct):
    v: int
    at: int


class _Group(msgspec.Struct):
    v: int
    options: dict[str, str]


class _ProducerIds(msgspec.Struct):
    v: int
    end: int


class _Schedule(msgspec.Struct):
    v: int
    topic: str
    partition: int


def encode_value(value: Value) -> bytes:
    return msgspec.json.encode(_in_json(value))


def _in_json(value: Value) -> Any:  # noqa: PLR0911  one for each kind
    if isinstance(value, AccountValue):
        return account_in_json(VERSION, value)
    match value:
        case ClusterValue():
            secret, counts = value.secret.hex(), (value.groups, value.transactions)
            return _Cluster(VERSION, value.cluster_id, secret, *counts, value.format, value.halted, value.recoveries)
        case NodeValue():
            return _Node(VERSION, *value)
        case NodeInfo():
            return _live_in_json(value)
        case TopicValue():
            state = DELETING if value.is_deleting else MAKING if value.is_making else LIVE
            counts = value.partitions, value.replication_factor
            return _Topic(VERSION, value.topic_id.hex(), *counts, state, dict(value.overrides))
        case Placement():
            copies = value.replicas, value.adding, value.removing, value.isr
            lost = tuple(_Lost(*each) for each in value.lost)
            return _Partition(VERSION, *copies, value.leader, value.incarnation, value.epoch, lost)
        case GoneValue():
            return _Gone(VERSION, *value)
        case RemovedValue():
            return _Removed(VERSION, *value)
        case GroupValue():
            return _Group(VERSION, dict(value.options))
        case ProducerIdsValue():
            return _ProducerIds(VERSION, *value)
        case ScheduleValue():
            return _Schedule(VERSION, value.topic_id.hex(), value.partition)


def _live_in_json(node: NodeInfo) -> _Live:
    made = _Live(VERSION, node.directory, node.boot, node.started_ms, node.rack, node.formats, node.version)
    made.peer, made.kafka, made.http, made.grpc = map(_address, (node.peer, node.kafka, node.http, node.grpc))
    if node.listeners:
        made.listeners = {name: _address(address) or "" for name, address in node.listeners}
    return made


def _address(address: HostPort | None) -> str | None:
    if address is None:
        return None
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _host_port(text: str | None) -> HostPort | None:
    return None if text is None else _parted(text)


def _parted(text: str) -> HostPort:
    host, _, port = text.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)


T = TypeVar("T")


def _decode(kind: type[T], key: Key, value: bytes) -> T:
    try:
        decoded = msgspec.json.decode(value, type=kind)
        version: int = decoded.v  # type: ignore[attr-defined]  # every one of them has it
    except msgspec.DecodeError as error:
        version = _version_of(value)
        if version <= VERSION:
            raise MetadataUnreadable(f"the value of {key_path(key)!r} in etcd is damaged: {error}") from None
        decoded = None
    if decoded is None or version > VERSION:
        raise MetadataUnreadable(
            f"the value of {key_path(key)!r} in etcd has version {version}, and this node knows none above {VERSION}:"
            " upgrade this node"
        )
    return decoded


def _version_of(value: bytes) -> int:
    try:
        return msgspec.json.decode(value, type=_Json).v
    except msgspec.DecodeError:
        return 0


def decode_value(key: Key, entry: KeyValue) -> Value:  # noqa: PLR0911  one for each kind
    value = entry.value
    assert value is not None
    if isinstance(key, AccountKey):
        return _decode(ACCOUNT_FORMS[type(key)], key, value).value()
    match key:
        case ClusterKey():
            it = _decode(_Cluster, key, value)
            secret = bytes.fromhex(it.secret)
            return ClusterValue(it.id, secret, it.groups, it.transactions, it.format, it.halted, it.recoveries)
        case NodeKey():
            node = _decode(_Node, key, value)
            return NodeValue(node.directory, node.rack, node.wanted)
        case LiveKey():
            return _live(key.node_id, _decode(_Live, key, value), entry)
        case TopicKey():
            return _topic(_decode(_Topic, key, value))
        case PartitionKey():
            return _placement(_decode(_Partition, key, value), entry.mod_revision)
        case GoneKey():
            gone = _decode(_Gone, key, value)
            return GoneValue(gone.name, gone.at)
        case RemovedKey():
            return RemovedValue(_decode(_Removed, key, value).at)
        case GroupKey():
            return GroupValue(_decode(_Group, key, value).options)
        case ProducerIdsKey():
            return ProducerIdsValue(_decode(_ProducerIds, key, value).end)
        case ScheduleKey():
            schedule = _decode(_Schedule, key, value)
            return ScheduleValue(bytes.fromhex(schedule.topic), schedule.partition)


def _live(node_id: int, it: _Live, entry: KeyValue) -> NodeInfo:
    listeners = {} if isinstance(it.listeners, msgspec.UnsetType) else it.listeners
    return NodeInfo(
        node_id,
        entry.create_revision,
        _host_port(it.kafka),
        it.rack,
        _host_port(it.peer),
        _host_port(it.http),
        _host_port(it.grpc),
        it.directory,
        it.boot,
        it.started,
        it.version,
        it.formats,
        entry.lease,
        tuple((name, _parted(address)) for name, address in listeners.items()),
    )


def _topic(it: _Topic) -> TopicValue:
    if it.state not in {MAKING, LIVE, DELETING}:
        raise ValueError(f"no state of a topic: {it.state!r}")
    is_deleting, is_making = it.state == DELETING, it.state == MAKING
    return TopicValue(bytes.fromhex(it.id), it.partitions, it.overrides, is_deleting, is_making, it.replication_factor)


def _placement(it: _Partition, revision: int) -> Placement:
    lost = tuple(Lost(each.at, each.leader, each.offset, each.why) for each in it.lost)
    return Placement(it.leader, it.incarnation, it.epoch, it.isr, it.replicas, it.adding, it.removing, revision, lost)
