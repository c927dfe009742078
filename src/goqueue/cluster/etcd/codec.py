"""Keys and values as they stand in etcd. Values are JSON, so that a person with a shell can read them, and each has the
version of its form, `v`: what is written in a later form than is known here may mean anything.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import msgspec

from goqueue.cluster.accounts import AccountKey, AccountValue
from goqueue.cluster.etcd.account_forms import ACCOUNT_FORMS, ACCOUNT_KEYS, account_in_json, account_path
from goqueue.cluster.etcd.port import KeyCompare, KeyPut, KeyValue
from goqueue.model.errors import GoQueueError
from goqueue.model.metadata import (
    ClusterKey,
    ClusterValue,
    Compare,
    CompareGone,
    Event,
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
    Put,
    RemovedKey,
    RemovedValue,
    ScheduleKey,
    ScheduleValue,
    TopicKey,
    TopicValue,
    Value,
)
from goqueue.model.placements import HostPort, Lost, NodeInfo, Placement

VERSION: Final = 1
"""The highest form of a value that is known here."""
PREFIX = "/goqueue/"

MAKING, LIVE, DELETING = "making", "live", "deleting"


class MetadataUnreadable(GoQueueError):
    """What is in etcd was written by a later version, or by nobody of ours. Nothing is decided from it."""


class _Json(msgspec.Struct):
    v: int


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


def prefix_of(cluster_name: str) -> str:
    return f"{PREFIX}{cluster_name}/"


# -- keys


def key_path(key: Key) -> str:  # noqa: PLR0911  one for each kind
    """Behind the prefix of the cluster."""
    if isinstance(key, AccountKey):
        return account_path(key)
    match key:
        case ClusterKey():
            return "cluster"
        case NodeKey():
            return f"nodes/{key.node_id}"
        case LiveKey():
            return f"live/{key.node_id}"
        case TopicKey():
            return f"topics/{key.name}"
        case PartitionKey():
            return f"partitions/{key.topic_id.hex()}/{key.number}"
        case GoneKey():
            return f"gone/{key.topic_id.hex()}"
        case RemovedKey():
            return f"removed/{key.topic_id.hex()}/{key.node_id}"
        case GroupKey():
            return f"groups/{key.group_id}"
        case ProducerIdsKey():
            return "producer-ids"
        case ScheduleKey():
            return f"schedules/{key.name}"


_KEYS: dict[str, Callable[[str], Key]] = {
    "nodes": lambda rest: NodeKey(int(rest)),
    "live": lambda rest: LiveKey(int(rest)),
    "topics": TopicKey,
    "partitions": lambda rest: PartitionKey(*_id_and_number(rest)),
    "gone": lambda rest: GoneKey(bytes.fromhex(rest)),
    "removed": lambda rest: RemovedKey(*_id_and_number(rest)),
    "groups": GroupKey,
    "schedules": ScheduleKey,
    **ACCOUNT_KEYS,
}


def _id_and_number(rest: str) -> tuple[bytes, int]:
    topic_id, _, number = rest.partition("/")
    return bytes.fromhex(topic_id), int(number)


def key_of(path: str) -> Key | None:
    """None: of a kind that is not known here, so nothing rests on it."""
    if path == "cluster":
        return ClusterKey()
    if path == "producer-ids":
        return ProducerIdsKey()
    kind, slash, rest = path.partition("/")
    make = _KEYS.get(kind)
    if not slash or make is None:
        return None
    try:
        key = make(rest)
    except ValueError:
        key = None
    if key is None or key_path(key) != path:  # else two keys would be taken for one
        raise MetadataUnreadable(f"etcd has a key that nothing of GoQueue writes: {path!r}")
    return key


# -- values


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


# -- what a store asks


def decode_entry(prefix: str, entry: KeyValue) -> Event | None:
    """None: nothing that is known here."""
    try:
        key = key_of(entry.key[len(prefix.encode()) :].decode())
        if key is None:
            return None
        value = None if entry.value is None else decode_value(key, entry)
    except ValueError as error:  # not text, not a number, not in hex
        raise MetadataUnreadable(f"the value of {entry.key!r} in etcd is damaged: {error}") from None
    return Event(key, value, entry.mod_revision)


def encode_compares(prefix: str, compares: Sequence[Compare | CompareGone]) -> list[KeyCompare]:
    return [
        KeyCompare((prefix + key_path(each.key)).encode(), each.revision, isinstance(each, Compare))
        for each in compares
    ]


def encode_puts(prefix: str, puts: Sequence[Put]) -> list[KeyPut]:
    return [
        KeyPut((prefix + key_path(put.key)).encode(), None if put.value is None else encode_value(put.value), put.lease)
        for put in puts
    ]
