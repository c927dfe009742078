"""Membership in a queue group: heartbeats, and which partitions are ours for now."""

import asyncio
from collections.abc import Callable, Sequence

from goqueue.client.cluster import GROUP_KEY, Cluster
from goqueue.client.errors import BrokerRefused, ClientError, refusal
from goqueue.model.codes import Code
from goqueue.ports.dice import random_uuid
from goqueue.telemetry.logs import get_logger
from goqueue.wire.kafka.messages.share_groups import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    ShareHeartbeatAssignment,
)

JOIN_EPOCH, LEAVE_EPOCH = 0, -1
LEAVE_S_MAX = 2.0
BEGIN_AGAIN = frozenset((Code.UNKNOWN_MEMBER_ID, Code.FENCED_MEMBER_EPOCH, Code.GROUP_ID_NOT_FOUND))

TopicIdPartition = tuple[bytes, int]

log = get_logger("goqueue.client")


class ShareMember:
    """`run` beats until it is cancelled; `on_assigned` is told whenever what is ours may have changed."""

    def __init__(self, cluster: Cluster, group: str, topics: Sequence[str], on_assigned: Callable[[], object]) -> None:
        self.id = random_uuid(cluster.dice)
        self.group = group
        self.assigned: frozenset[TopicIdPartition] = frozenset()
        self._cluster = cluster
        self._topics = list(topics)
        self._are_told = False
        """Whether the broker knows our topics."""
        self._on_assigned = on_assigned
        self._epoch = JOIN_EPOCH
        self._beating = asyncio.Lock()

    async def join(self) -> float:
        """The first heartbeat. Returns in how many seconds the next is due."""
        return await self._beat()

    async def subscribe(self, topics: Sequence[str]) -> None:
        """To these topics instead. If this heartbeat fails, the next one tells."""
        self._topics, self._are_told = list(topics), False
        await self._beat()

    async def run(self, pause_s: float) -> None:
        while True:
            await self._cluster.clock.sleep(pause_s)
            try:
                pause_s = await self._beat()
            except BrokerRefused as error:
                if error.code not in BEGIN_AGAIN:
                    raise
                self._epoch, pause_s = JOIN_EPOCH, 0.0
            except ClientError as error:
                if not error.retriable:
                    raise
                log.warning("no heartbeat got through", group=self.group, reason=str(error))

    async def leave(self) -> None:
        """As far as that is possible: a broker that is gone finds out for itself."""
        if self._epoch == JOIN_EPOCH:
            return
        self._epoch = LEAVE_EPOCH
        try:
            await self._ask(self._cluster.clock.time_s() + LEAVE_S_MAX)
        except ClientError as error:
            log.info("the group was not told that a worker leaves", group=self.group, reason=str(error))

    async def _beat(self) -> float:
        async with self._beating:  # each tells the epoch that the one before it was given
            topics = self._topics
            answer = await self._ask(None)
            self._epoch = answer.member_epoch
            self._are_told = topics is self._topics
        if answer.assignment is not None:
            self._take(answer.assignment)
        return answer.heartbeat_interval_ms / 1000

    def _take(self, assignment: ShareHeartbeatAssignment) -> None:
        self.assigned = frozenset(
            (topic.topic_id, number) for topic in assignment.topic_partitions for number in topic.partitions
        )
        self._on_assigned()

    async def _ask(self, give_up_s: float | None) -> ShareGroupHeartbeatResponse:
        def request() -> ShareGroupHeartbeatRequest:
            topics = None if self._are_told and self._epoch != JOIN_EPOCH else self._topics
            return ShareGroupHeartbeatRequest(self.group, self.id, self._epoch, None, topics)

        return await self._cluster.ask_coordinator(
            GROUP_KEY, self.group, request, ShareGroupHeartbeatResponse, _check, give_up_s
        )


def _check(answer: ShareGroupHeartbeatResponse) -> None:
    if answer.error_code != Code.NONE:
        raise refusal(answer.error_code, answer.error_message)
