"""Where each method is at home in a cluster, and how answers of all nodes become one."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from google.protobuf.message import Message

from goqueue.doors.grpc.call import PAGE_MAX
from goqueue.wire.home import EVERYWHERE, GROUP, HERE, IN_PARTS, TRANSACTION, Home, Way, at

OF_GROUP = at(GROUP, "group_id")
OF_TRANSACTION = at(TRANSACTION, "transactional_id", otherwise=Way.FIRST)

_OURS: Mapping[str, Mapping[str, Home]] = {
    "AckService": dict.fromkeys(("Ack", "Nack", "Reject", "ExtendVisibility", "BatchAck"), IN_PARTS),
    "ConsumeService": {"Consume": IN_PARTS, "Subscribe": OF_GROUP},
    "GroupService": {
        "ListGroups": EVERYWHERE,
        "DescribeGroup": OF_GROUP,
        "ConfigureGroup": HERE,
        "DeleteGroup": OF_GROUP,
    },
    "HealthService": dict.fromkeys(("Check", "Watch"), HERE),
    "OffsetService": {"CommitOffsets": OF_GROUP, "FetchOffsets": EVERYWHERE, "ResetOffsets": OF_GROUP},
    "PublishService": dict.fromkeys(("Publish", "PublishStream"), IN_PARTS),
    "TopicService": {
        **dict.fromkeys(("CreateTopic", "ListTopics", "ConfigureTopic", "DeleteTopic"), HERE),
        "DescribeTopic": EVERYWHERE,
    },
    "TransactionService": {
        "InitProducer": at(TRANSACTION, "transactional_id", otherwise=Way.HERE),
        **dict.fromkeys(("BeginTransaction", "AddPartition", "CommitTransaction", "AbortTransaction"), OF_TRANSACTION),
        "ListTransactions": EVERYWHERE,
        "DescribeTransaction": Home(Way.FIRST),
    },
}
HOMES: Mapping[str, Home] = {
    **{f"goqueue.v1.{service}.{name}": each for service, methods in _OURS.items() for name, each in methods.items()},
    **dict.fromkeys((f"grpc.health.v1.Health.{name}" for name in ("Check", "List", "Watch")), HERE),
}
"""By the full name of the method."""

Merge = Callable[[Sequence[Any], Any], Message]
"""Given the answers and the request."""


def _page(field: str, key: str, better: Callable[[Any, Any], Any]) -> Merge:
    """One for each name, sorted; as far as all nodes have come, and as many as were asked for."""

    def merge(replies: Sequence[Any], request: Any) -> Message:
        found: dict[str, Any] = {}
        for each in replies:
            for item in getattr(each, field):
                name = getattr(item, key)
                found[name] = better(found[name], item) if name in found else item
        tokens = [each.next_page_token for each in replies if each.next_page_token]
        names = [name for name in sorted(found) if not tokens or name <= min(tokens)]
        shown = names[: request.page_size or PAGE_MAX]
        token = min(tokens, default="") if len(shown) == len(names) else shown[-1]
        return type(replies[0])(  # type: ignore[no-any-return]
            **{field: [found[name] for name in shown]}, next_page_token=token
        )

    return merge


def _partitions(replies: Sequence[Any], _request: Any) -> Message:
    """Of a topic: what the leader of each says."""
    merged = type(replies[0])(name=replies[0].name, options=dict(replies[0].options))
    for number in range(max(len(each.partitions) for each in replies)):
        told = [each.partitions[number] for each in replies if number < len(each.partitions)]
        merged.partitions.append(next((each for each in told if each.in_service), told[0]))
    return merged  # type: ignore[no-any-return]


def _offsets(replies: Sequence[Any], _request: Any) -> Message:
    found: dict[tuple[str, int], Any] = {}
    for reply in replies:
        for each in reply.offsets:
            at_place = each.topic, each.partition
            if at_place not in found or each.offset > found[at_place].offset:
                found[at_place] = each
    return type(replies[0])(offsets=[found[each] for each in sorted(found)])  # type: ignore[no-any-return]


MERGES: Mapping[str, Merge] = {
    "goqueue.v1.GroupService.ListGroups": _page(
        "groups", "group_id", lambda one, other: max(one, other, key=lambda each: (each.members, len(each.topics)))
    ),
    "goqueue.v1.OffsetService.FetchOffsets": _offsets,
    "goqueue.v1.TopicService.DescribeTopic": _partitions,
    "goqueue.v1.TransactionService.ListTransactions": _page(
        "transactions", "transactional_id", lambda one, _other: one
    ),
}
