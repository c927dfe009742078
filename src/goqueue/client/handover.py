"""Partitions come and go: what is being worked on is finished and committed before it is given back."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from inspect import isawaitable
from typing import NamedTuple

from goqueue.client.assigned import Assigned, Place
from goqueue.client.cluster import Cluster
from goqueue.client.errors import ClientError
from goqueue.client.fetcher import Fetcher
from goqueue.client.inbox import Inbox
from goqueue.client.offsets import GroupOffsets, offsets_at, timestamp_of
from goqueue.client.times import Moment
from goqueue.telemetry.logs import get_logger

OnChange = Callable[[set[Place]], Awaitable[None] | None]
"""Told which partitions were assigned or revoked; may be async."""

log = get_logger("goqueue.client")


class HandoverOptions(NamedTuple):
    start: Moment
    is_committed: bool
    commits: bool
    """Whether processed messages are committed without being asked to."""
    patience_s: float
    """How long the user may go on with a message of a partition that is wanted back."""
    on_assigned: OnChange | None
    on_revoked: OnChange | None


class Handover:
    def __init__(
        self, cluster: Cluster, fetcher: Fetcher, inbox: Inbox, offsets: GroupOffsets | None, options: HandoverOptions
    ) -> None:
        self._cluster = cluster
        self._fetcher = fetcher
        self._inbox = inbox
        self._offsets = offsets
        self._options = options
        self._wanted_back: asyncio.Future[None] | None = None
        """Set while somebody waits for the user to come back."""
        self._dropped: asyncio.Future[None] | None = None
        self.leaving: dict[Place, int] = {}
        """Given up, but still ours to commit."""

    @property
    def is_waiting(self) -> bool:
        return self._wanted_back is not None

    async def user_is_back(self) -> None:
        """Let a partition go that was only waited for."""
        self._inbox.user_is_back()
        if self._wanted_back is not None and not self._wanted_back.done():
            self._wanted_back.set_result(None)
        if self._dropped is not None:
            await asyncio.shield(self._dropped)

    # -- hooks of the membership

    async def begin(self, places: set[Place]) -> None:
        """Read them from where the group has come to, or from where it should start."""
        for topic in sorted({topic for topic, _ in places}):
            await self._cluster.topic(topic)
        committed = await self._offsets.committed(places) if self._offsets is not None else {}
        fresh = places - committed.keys()
        starts = committed | await self.starts(sorted(fresh))
        states = [Assigned(place, starts[place]) for place in sorted(places)]
        for state in states:
            state.committed = committed.get(state.place, -1)
            state.is_resetting = True
        self._fetcher.add(states)
        await self._call(self._options.on_assigned, places)
        for state in states:
            state.is_resetting = False
        self._fetcher.changed()

    async def starts(self, places: Iterable[Place]) -> dict[Place, int]:
        moment = timestamp_of(self._options.start, self._cluster.clock.now_ms())
        wanted = dict.fromkeys(places, moment)
        if not wanted:
            return {}
        return await offsets_at(self._cluster, wanted, is_committed=self._options.is_committed)

    async def give_back(self, places: set[Place]) -> None:
        """After what their user works on is done. Nobody reads them from here on."""
        if self._inbox.is_out(places):
            await self._wait_for_user()
        await self.let_go(places)

    async def let_go(self, places: set[Place]) -> None:
        states = [self._fetcher.states[place] for place in sorted(places) if place in self._fetcher.states]
        before = {state.place: state.committed for state in states}
        self.leaving = self._inbox.processed(states)
        self._drop(places)
        await self._call(self._options.on_revoked, places)
        changed = {place: offset for place, offset in self.leaving.items() if offset != before[place]}
        self.leaving = {}
        if self._options.commits and self._offsets is not None:
            try:
                await self._offsets.commit(changed, self._cluster.clock.time_s() + self._options.patience_s)
            except ClientError as error:
                log.warning("offsets were not committed; messages will be delivered again", why=str(error))

    async def lose(self, places: set[Place]) -> None:
        """Somebody else has them: nothing can be committed any more."""
        if places:
            log.warning("partitions were lost: this consumer was away for too long", partitions=len(places))
        self._drop(places)
        await self._call(self._options.on_revoked, places)

    async def _wait_for_user(self) -> None:
        loop = asyncio.get_running_loop()
        self._wanted_back, self._dropped = loop.create_future(), loop.create_future()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._options.patience_s):
                await self._wanted_back

    def _drop(self, places: set[Place]) -> None:
        self._inbox.forget(places)
        self._fetcher.drop(places)
        self._wanted_back = None
        dropped, self._dropped = self._dropped, None
        if dropped is not None and not dropped.done():
            dropped.set_result(None)

    async def _call(self, hook: OnChange | None, places: set[Place]) -> None:
        if hook is None or not places:
            return
        try:
            result = hook(set(places))
            if isawaitable(result):
                await result
        except Exception as error:
            log.error("a callback of the consumer failed", exc_info=error)
