"""Where reading begins: offsets by time, and the ones that a group has committed."""

from collections.abc import Iterable, Mapping
from itertools import groupby

from goqueue.client.assigned import Place
from goqueue.client.cluster import DATA, GROUP_KEY, NO_LEADER, Cluster
from goqueue.client.errors import BrokerRefused, ClientError, code_of, refusal
from goqueue.model.codes import Code
from goqueue.model.moments import parse_moment_ms
from goqueue.wire.kafka.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from goqueue.wire.kafka.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

LATEST, EARLIEST = -1, -2
NAMED = {"latest": LATEST, "earliest": EARLIEST}
NONE_COMMITTED = -1
NO_OFFSET = -1


def timestamp_of(start: str | int, now_ms: int) -> int:
    """For ListOffsets: "earliest", "latest", or a moment. InvalidMoment: it is none of these."""
    if isinstance(start, str) and start in NAMED:
        return NAMED[start]
    return parse_moment_ms(start, now_ms)


async def offsets_at(
    cluster: Cluster, wanted: Mapping[Place, int], *, is_committed: bool, give_up_s: float | None = None
) -> dict[Place, int]:
    """The first offset at or after each time; where there is none yet, the end of the partition."""
    found = await first_offsets(cluster, wanted, is_committed=is_committed, give_up_s=give_up_s)
    beyond = {place: LATEST for place, offset in found.items() if offset == NO_OFFSET}
    if beyond:
        found.update(await offsets_at(cluster, beyond, is_committed=is_committed, give_up_s=give_up_s))
    return found


async def first_offsets(
    cluster: Cluster, wanted: Mapping[Place, int], *, is_committed: bool, give_up_s: float | None = None
) -> dict[Place, int]:
    """The first offset at or after each time, or NO_OFFSET."""
    found: dict[Place, int] = {}

    async def attempt() -> None:
        missing = {place: wanted[place] for place in wanted if place not in found}
        try:
            found.update(await _list(cluster, missing, is_committed))
        except BrokerRefused as error:
            if error.retriable:
                await cluster.refresh({topic for topic, _ in missing})
            raise

    await cluster.retry(attempt, give_up_s)
    return found


async def _list(cluster: Cluster, wanted: Mapping[Place, int], is_committed: bool) -> dict[Place, int]:
    found: dict[Place, int] = {}
    by_leader = sorted(wanted, key=lambda place: cluster.leader(*place))
    for node_id, places in groupby(by_leader, key=lambda place: cluster.leader(*place)):
        if node_id == NO_LEADER:
            raise BrokerRefused(Code.LEADER_NOT_AVAILABLE, "a partition has no leader now")
        topics: dict[str, ListOffsetsTopic] = {}
        for topic, partition in places:
            asked = topics.setdefault(topic, ListOffsetsTopic(topic))
            asked.partitions.append(ListOffsetsPartition(partition, timestamp=wanted[topic, partition]))
        connection = await cluster.connection(node_id, DATA)
        request = ListOffsetsRequest(-1, int(is_committed), list(topics.values()))
        answer = await connection.ask(request, ListOffsetsResponse)
        for answered in answer.topics:
            for one in answered.partitions:
                if one.error_code != Code.NONE:
                    raise refusal(one.error_code)
                found[answered.name, one.partition_index] = one.offset
    return found


class GroupOffsets:
    """What one group has committed. `member` tells who asks: id and epoch, which change with the membership."""

    def __init__(self, cluster: Cluster, group: str) -> None:
        self._cluster = cluster
        self.group = group
        self.member_id = ""
        self.member_epoch = -1

    async def committed(self, places: Iterable[Place]) -> dict[Place, int]:
        """Only of those that have something committed."""
        topics: dict[str, OffsetFetchRequestTopics] = {}
        for topic, partition in sorted(places):
            topics.setdefault(topic, OffsetFetchRequestTopics(topic)).partition_indexes.append(partition)

        def request() -> OffsetFetchRequest:
            asked = OffsetFetchRequestGroup(
                self.group, self.member_id or None, self.member_epoch, list(topics.values())
            )
            return OffsetFetchRequest(groups=[asked], require_stable=True)

        def check(answer: OffsetFetchResponse) -> None:
            (group,) = answer.groups
            codes = [group.error_code, *(one.error_code for topic in group.topics for one in topic.partitions)]
            _check(codes)

        answer = await self._cluster.ask_coordinator(GROUP_KEY, self.group, request, OffsetFetchResponse, check)
        (group,) = answer.groups
        return {
            (topic.name, one.partition_index): one.committed_offset
            for topic in group.topics
            for one in topic.partitions
            if one.committed_offset != NONE_COMMITTED
        }

    async def commit(self, offsets: Mapping[Place, int], give_up_s: float | None = None) -> None:
        """All of them, or an error."""
        topics: dict[str, OffsetCommitRequestTopic] = {}
        for (topic, partition), offset in offsets.items():
            asked = topics.setdefault(topic, OffsetCommitRequestTopic(topic))
            asked.partitions.append(OffsetCommitRequestPartition(partition, offset))

        def request() -> OffsetCommitRequest:
            return OffsetCommitRequest(self.group, self.member_epoch, self.member_id, topics=list(topics.values()))

        def check(answer: OffsetCommitResponse) -> None:
            _check([one.error_code for topic in answer.topics for one in topic.partitions])

        if topics:
            await self._cluster.ask_coordinator(GROUP_KEY, self.group, request, OffsetCommitResponse, check, give_up_s)


class StaleEpoch(ClientError):
    """The member has not heard yet which epoch it is in; its next heartbeat tells."""

    retriable = True


def _check(codes: Iterable[int]) -> None:
    for number in codes:
        code = code_of(number)
        if code is Code.STALE_MEMBER_EPOCH:
            raise StaleEpoch("this member is in another epoch by now")
        if code is not Code.NONE:
            raise refusal(code)
