"""A member of a group of KIP-848: heartbeats tell the coordinator what we have, and tell us what we shall have.

Only what changes hands stops: it is given back first, which the next heartbeat says, and then others get it. Partitions
that stay are read on all the while.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NamedTuple

from goqueue.client.assigned import Place
from goqueue.client.cluster import GROUP_KEY, Cluster
from goqueue.client.errors import BrokerRefused, ClientError, refusal
from goqueue.client.offsets import GroupOffsets
from goqueue.client.tasks import Tasks
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.ports.dice import random_uuid
from goqueue.wire.kafka.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    HeartbeatAssignment,
    HeartbeatTopicPartitions,
)

JOIN, LEAVE, LEAVE_FOR_A_WHILE = 0, -1, -2
LOST = frozenset((Code.UNKNOWN_MEMBER_ID, Code.FENCED_MEMBER_EPOCH))
FAREWELL_S_MAX = 2.0


class Subscription(NamedTuple):
    group: str
    topics: tuple[str, ...]
    instance_id: str | None
    rebalance_ms: int
    assignor: str | None


class Hooks(NamedTuple):
    """What the consumer does when its partitions change. While one of them is awaited, heartbeats go on."""

    give_back: Callable[[set[Place]], Awaitable[None]]
    lose: Callable[[set[Place]], Awaitable[None]]
    """They are somebody else's already."""
    begin: Callable[[set[Place]], Awaitable[None]]
    fail: Callable[[GoQueueError], None]
    """The membership is over, and does not come back."""


class Membership:
    def __init__(
        self, cluster: Cluster, wanted: Subscription, offsets: GroupOffsets, tasks: Tasks, hooks: Hooks
    ) -> None:
        self._cluster = cluster
        self._wanted = wanted
        self._offsets = offsets
        self._tasks = tasks
        self._hooks = hooks
        self.member_id = random_uuid(cluster.dice)
        self._epoch = JOIN
        self.owned: set[Place] = set()
        """What we have, and answer for. Only `_reconcile` changes it."""
        self._target: set[Place] = set()
        self._target_ids: dict[bytes, list[int]] | None = None
        """The target as it was told, if some of its topics are not known by name yet."""
        self._is_reconciling = False
        self._lives = 0
        """How often we have joined: what an earlier life was about to begin no longer counts."""
        self._beat = asyncio.Event()
        """Set: the next heartbeat is due now."""
        self._interval_s = 5.0
        self._is_unanswered = False
        """A heartbeat was sent and no answer came. It may have said what we shall have, which is said once: so all is
        told again, by which the coordinator knows that it must say it again."""
        offsets.member_id = self.member_id

    async def run(self) -> None:
        """For ever, or until the coordinator refuses this member for good."""
        clock = self._cluster.clock
        while True:
            try:
                await self._heartbeat()
                await self._learn_names()
            except BrokerRefused as error:
                if error.code in LOST:
                    await self._lost()
                    continue
                if error.code is not Code.UNRELEASED_INSTANCE_ID and not error.retriable:
                    self._hooks.fail(error)
                    return
                await clock.sleep(self._cluster.backoff.pause_s(3, self._cluster.dice))
                continue
            except ClientError as error:
                if not error.retriable:
                    self._hooks.fail(error)
                    return
                continue  # it was tried for long; it goes on trying
            if self._target != self.owned and not self._is_reconciling:
                self._is_reconciling = True
                self._tasks.start(self._reconcile(), "goqueue consumer: assignment")
            self._beat.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._interval_s):
                    await self._beat.wait()

    async def leave(self) -> None:
        """Say goodbye, so that others need not wait until we are missed. One attempt."""
        if self._epoch == JOIN:
            return
        self._epoch = LEAVE if self._wanted.instance_id is None else LEAVE_FOR_A_WHILE
        give_up_s = self._cluster.clock.time_s() + FAREWELL_S_MAX
        with suppress(ClientError, TimeoutError):
            async with asyncio.timeout(FAREWELL_S_MAX):
                await self._ask(give_up_s)

    # -- heartbeats

    async def _heartbeat(self) -> None:
        answer = await self._ask()
        self._is_unanswered = False
        self._epoch = answer.member_epoch
        self._offsets.member_epoch = answer.member_epoch
        self._interval_s = max(answer.heartbeat_interval_ms, 10) / 1000
        if answer.assignment is not None:
            self._told(answer.assignment)

    async def _ask(self, give_up_s: float | None = None) -> ConsumerGroupHeartbeatResponse:
        def check(answer: ConsumerGroupHeartbeatResponse) -> None:
            if answer.error_code != Code.NONE:
                raise refusal(answer.error_code, answer.error_message)

        return await self._cluster.ask_coordinator(
            GROUP_KEY, self._wanted.group, self._request, ConsumerGroupHeartbeatResponse, check, give_up_s
        )

    def _request(self) -> ConsumerGroupHeartbeatRequest:
        wanted, is_join = self._wanted, self._epoch == JOIN
        is_full, self._is_unanswered = is_join or self._is_unanswered, True
        return ConsumerGroupHeartbeatRequest(
            wanted.group,
            self.member_id,
            self._epoch,
            instance_id=wanted.instance_id,
            rebalance_timeout_ms=wanted.rebalance_ms if is_full else -1,
            subscribed_topic_names=list(wanted.topics) if is_full else None,
            server_assignor=wanted.assignor if is_full else None,
            topic_partitions=[] if is_join else self._owned_by_id(),
        )

    def _owned_by_id(self) -> list[HeartbeatTopicPartitions]:
        by_id: dict[bytes, HeartbeatTopicPartitions] = {}
        for name, partition in sorted(self.owned):
            topic = self._cluster.known(name)
            if topic is not None:
                by_id.setdefault(topic.id, HeartbeatTopicPartitions(topic.id)).partitions.append(partition)
        return list(by_id.values())

    def _told(self, assignment: HeartbeatAssignment) -> None:
        self._target_ids = {one.topic_id: one.partitions for one in assignment.topic_partitions}

    async def _learn_names(self) -> None:
        """The protocol names topics by their ids."""
        if self._target_ids is None:
            return
        unknown = [topic_id for topic_id in self._target_ids if self._cluster.name_of(topic_id) is None]
        if unknown:
            await self._cluster.refresh_ids(unknown)
        target: set[Place] = set()
        for topic_id, partitions in self._target_ids.items():
            name = self._cluster.name_of(topic_id)
            if name is not None:
                target.update((name, partition) for partition in partitions)
        self._target, self._target_ids = target, None

    # -- changes

    async def _reconcile(self) -> None:
        """To the newest target, which may change on the way."""
        life = self._lives
        try:
            while self.owned != self._target and life == self._lives:
                surplus = self.owned - self._target
                if surplus:
                    await self._hooks.give_back(surplus)
                    self.owned -= surplus
                    self._beat.set()
                    continue
                missing = self._target - self.owned
                await self._hooks.begin(missing)
                if life != self._lives:
                    await self._hooks.lose(missing)
                    return
                self.owned |= missing
                self._beat.set()
        except ClientError as error:
            if not error.retriable:
                self._hooks.fail(error)
        finally:
            self._is_reconciling = False

    async def _lost(self) -> None:
        """We were away for too long: others have our partitions. Join again."""
        lost, self.owned, self._target = self.owned, set(), set()
        self._epoch = JOIN
        self._lives += 1
        await self._hooks.lose(lost)
