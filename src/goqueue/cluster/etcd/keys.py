"""Keys of the metadata as they stand in etcd, behind the prefix of the cluster."""

from collections.abc import Callable

from goqueue.cluster.accounts import AccountKey
from goqueue.cluster.etcd.account_forms import ACCOUNT_KEYS, account_path
from goqueue.model.errors import GoQueueError
from goqueue.model.metadata import (
    ClusterKey,
    GoneKey,
    GroupKey,
    Key,
    LiveKey,
    NodeKey,
    PartitionKey,
    ProducerIdsKey,
    RemovedKey,
    ScheduleKey,
    TopicKey,
)

PREFIX = "/goqueue/"


class MetadataUnreadable(GoQueueError):
    """What is in etcd was written by a later version, or by nobody of ours. Nothing is decided from it."""


def prefix_of(cluster_name: str) -> str:
    return f"{PREFIX}{cluster_name}/"


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
