"""The part of `Admin` that looks after queues: dead letters, replays, forks, delays and schedules."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from goqueue.client.admin_part import PAGE, AdminPart
from goqueue.client.errors import InvalidArgument
from goqueue.client.times import Duration, Moment
from goqueue.wire.rest import operations as on

if TYPE_CHECKING:
    from goqueue.wire.rest import dead_letters as rest_letters
    from goqueue.wire.rest import delays, replays

RUNNING = frozenset(("running", "stopping"))
WAIT = "20s"
"""In one request, for the end of a redrive."""
LOOK_S = 1.0
"""Between two looks at one that takes longer."""


class QueueAdmin(AdminPart):
    # -- dead letters

    async def dead_letters(self, /, topic: str, **chosen: str | int) -> AsyncIterator[rest_letters.DeadLetter]:
        """All that nobody has dealt with yet; some of them by `reason`, `key`, `contains`, `lane`, `header`."""
        async for page in self._pages(on.dead_letters.LIST_DEAD_LETTERS, **{"topic": topic, "limit": PAGE, **chosen}):
            for letter in page.messages:
                yield letter

    async def dead_letter_topic(self, topic: str) -> str:
        """Where dead letters of this topic go. It is made with the first of them."""
        return (await self.call(on.dead_letters.LIST_DEAD_LETTERS, topic=topic, limit=1)).dlq_topic

    async def dead_letter(self, topic: str, partition: int, offset: int) -> rest_letters.DeadLetter:
        """One, by its place among the dead letters."""
        return await self.call(on.dead_letters.LOOK_AT_DEAD_LETTER, topic=topic, partition=partition, offset=offset)

    async def redrive(
        self,
        topic: str,
        *,
        to: str | None = None,
        filter: Mapping[str, Any] | None = None,
        places: Sequence[str] | None = None,
        rate: int = 0,
        redrives_max: int = 3,
        dry_run: bool = False,
        on_progress: Callable[[rest_letters.RedriveReply], None] | None = None,
    ) -> rest_letters.RedriveReply:
        """Send dead letters back to work, and wait until all are. `filter` as over HTTP: `{"reason": "rejected"}`;
        `places`: only these, each as PARTITION/OFFSET.
        """
        report = await self.call(
            on.dead_letters.REDRIVE,
            topic=topic,
            to=to,
            filter=filter,
            places=places,
            rate=rate,
            redrives_max=redrives_max,
            dry_run=dry_run,
            # Who wants to know how far it is does not want to wait for the first answer.
            wait=WAIT if on_progress is None else "200ms",
        )
        while report.state in RUNNING:
            if on_progress is not None:
                on_progress(report)
            await self._http.sleep(LOOK_S)
            report = await self.call(on.dead_letters.LOOK_AT_REDRIVE, topic=topic)
        return report

    async def purge_dead_letters(self, topic: str) -> int:
        """Throw all of them away, for good. Returns how many there were."""
        return (await self.call(on.dead_letters.PURGE_DEAD_LETTERS, topic=topic)).purged

    # -- reading again

    async def seek(
        self,
        group: str,
        topic: str,
        to: Moment,
        *,
        partitions: Sequence[int] | None = None,
        mode: Literal["queue", "stream"] | None = None,
        dry_run: bool = False,
        live: bool = False,
    ) -> replays.SeekReply:
        """Let a group go on from elsewhere: earliest, latest, an offset (a number) or a time (a text). A group that
        reads both ways needs a `mode`.
        """
        which = {"group": group, "topic": topic, "partitions": partitions, "mode": mode}
        return await self.call(on.replays.SEEK, to=to, dry_run=dry_run, live=live, **which)

    async def replay(
        self,
        group: str,
        topic: str,
        start: Moment,
        stop: Moment = "latest",
        *,
        filter: Mapping[str, Any] | None = None,
        rate: int = 0,
        fork_as: str | None = None,
        dry_run: bool = False,
    ) -> replays.ReplayReply:
        """Deliver part of a topic to a queue group again, or to a fork of it."""
        which = {"topic": topic, "start": start, "stop": stop, "filter": filter}
        return await self.call(on.replays.REPLAY, group=group, rate=rate, fork_as=fork_as, dry_run=dry_run, **which)

    async def fork(self, group: str, name: str) -> None:
        """A copy of what a group has settled, under another name, that goes its own way."""
        await self.call(on.replays.FORK, group=group, name=name)

    async def forks(self, group: str) -> list[replays.ForkSummary]:
        """Of a group, and by how much each differs from it."""
        return [each async for page in self._pages(on.replays.LIST_FORKS, group=group) for each in page.forks]

    async def compare(self, group: str, other: str) -> replays.Comparison:
        return await self.call(on.replays.COMPARE, group=group, other=other)

    async def promote(self, group: str, fork: str) -> None:
        """The group takes over what its fork has settled; the fork is dropped."""
        await self.call(on.replays.PROMOTE, group=group, fork=fork)

    async def drop_fork(self, group: str, fork: str) -> None:
        await self.call(on.replays.DROP_FORK, group=group, fork=fork)

    # -- what waits for its time

    async def delayed(self, topic: str, limit: int = 100, skip: int = 0) -> list[delays.DelayedMessage]:
        """The soonest first."""
        return (await self.call(on.delays.LIST_DELAYED, topic=topic, limit=limit, skip=skip)).messages

    async def all_delayed(self, topic: str) -> AsyncIterator[delays.DelayedMessage]:
        """By partition and offset, however many they are."""
        async for page in self._pages(on.delays.LIST_DELAYED, topic=topic, limit=PAGE, cursor="0/0"):
            for message in page.messages:
                yield message

    async def cancel(self, topic: str, partition: int, offset: int) -> None:
        """Never publish it."""
        await self.call(on.delays.CANCEL_DELAYED, topic=topic, partition=partition, offset=offset)

    async def reschedule(
        self, topic: str, partition: int, offset: int, *, delay: Duration | None = None, at: Moment | None = None
    ) -> delays.DelayedMessage:
        """Publish it `delay` from now, or `at` a time, instead."""
        if (delay is None) == (at is None):
            raise InvalidArgument("say either delay or at")
        place = {"topic": topic, "partition": partition, "offset": offset}
        return await self.call(on.delays.RESCHEDULE_DELAYED, delay=delay, deliver_at=at, **place)

    async def schedule(
        self,
        name: str,
        topic: str,
        value: str,
        *,
        cron: str,
        timezone: str = "UTC",
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        priority: str | None = None,
    ) -> delays.Schedule:
        """Publish it whenever `cron` says so, under a name that stands for this one thing."""
        message = {"topic": topic, "value": value, "key": key, "headers": headers, "priority": priority}
        return await self.call(on.delays.STORE_SCHEDULE, name=name, cron=cron, timezone=timezone, **message)

    async def schedules(self, limit: int = 100, skip: int = 0) -> list[delays.Schedule]:
        return (await self.call(on.delays.LIST_SCHEDULES, limit=limit, skip=skip)).schedules

    async def pause_schedule(self, name: str) -> delays.Schedule:
        """It does not run until it is resumed."""
        return await self.call(on.delays.PAUSE_SCHEDULE, name=name)

    async def resume_schedule(self, name: str) -> delays.Schedule:
        return await self.call(on.delays.RESUME_SCHEDULE, name=name)

    async def delete_schedule(self, name: str) -> None:
        await self.call(on.delays.DELETE_SCHEDULE, name=name)
