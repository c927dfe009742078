"""The part of `Admin` that looks after queues: dead letters, replays, forks, delays and schedules."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Literal

from goqueue.client.admin_part import AdminPart
from goqueue.client.errors import InvalidArgument
from goqueue.client.http import word
from goqueue.client.times import Duration, Moment
from goqueue.wire.rest import dead_letters as rest_letters
from goqueue.wire.rest import delays, replays

PAGE = 1000
RUNNING = frozenset(("running", "stopping"))
WAIT_S = 20.0
"""In one request, for the end of a redrive."""
LOOK_S = 1.0
"""Between two looks at one that takes longer."""


class QueueAdmin(AdminPart):
    # -- dead letters

    async def dead_letters(self, /, topic: str, **chosen: str | int) -> AsyncIterator[rest_letters.DeadLetter]:
        """All that nobody has dealt with yet; some of them by `reason`, `key`, `contains`, `lane`, `header`."""
        cursor: str | None = None
        while True:
            query: dict[str, Any] = {"limit": PAGE, **chosen} | ({} if cursor is None else {"cursor": cursor})
            page = await self._http.ask(rest_letters.DeadLetters, "GET", f"/topics/{word(topic)}/dlq", query=query)
            for letter in page.messages:
                yield letter
            if page.next is None:
                return
            cursor = page.next

    async def dead_letter_topic(self, topic: str) -> str:
        """Where dead letters of this topic go. It is made with the first of them."""
        return (
            await self._http.ask(rest_letters.DeadLetters, "GET", f"/topics/{word(topic)}/dlq", query={"limit": 1})
        ).dlq_topic

    async def dead_letter(self, topic: str, partition: int, offset: int) -> rest_letters.DeadLetter:
        """One, by its place among the dead letters."""
        path = f"/topics/{word(topic)}/dlq/{partition}/{offset}"
        return await self._http.ask(rest_letters.DeadLetter, "GET", path)

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
        path = f"/topics/{word(topic)}/dlq/redrive"
        body = {
            "to": to,
            "filter": filter,
            "places": places,
            "rate": rate,
            "redrives_max": redrives_max,
            "dry_run": dry_run,
            # Who wants to know how far it is does not want to wait for the first answer.
            "wait": f"{round(WAIT_S)}s" if on_progress is None else "200ms",
        }
        report = await self._http.ask(rest_letters.RedriveReply, "POST", path, body, wait_s=WAIT_S)
        while report.state in RUNNING:
            if on_progress is not None:
                on_progress(report)
            await self._http.sleep(LOOK_S)
            report = await self._http.ask(rest_letters.RedriveReply, "GET", path)
        return report

    async def purge_dead_letters(self, topic: str) -> int:
        """Throw all of them away, for good. Returns how many there were."""
        return (await self._http.ask(rest_letters.Purged, "DELETE", f"/topics/{word(topic)}/dlq")).purged

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
        body = {
            "topic": topic,
            "to": to,
            "partitions": partitions,
            "mode": mode,
            "dry_run": dry_run,
            "live": live,
        }
        return await self._http.ask(replays.SeekReply, "POST", f"/groups/{word(group)}/seek", body)

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
        body = {
            "topic": topic,
            "from": start,
            "to": stop,
            "filter": filter,
            "rate": rate,
            "fork_as": fork_as,
            "dry_run": dry_run,
        }
        return await self._http.ask(replays.ReplayReply, "POST", f"/groups/{word(group)}/replay", body)

    async def fork(self, group: str, name: str) -> None:
        """A copy of what a group has settled, under another name, that goes its own way."""
        await self._http.ask(replays.ForkReply, "POST", f"/groups/{word(group)}/fork", {"name": name})

    async def compare(self, group: str, other: str) -> replays.Comparison:
        return await self._http.ask(replays.Comparison, "GET", f"/groups/{word(group)}/compare", query={"with": other})

    async def promote(self, group: str, fork: str) -> None:
        """The group takes over what its fork has settled; the fork is dropped."""
        await self._http.ask(replays.PromoteReply, "POST", f"/groups/{word(group)}/promote", {"fork": fork})

    async def drop_fork(self, group: str, fork: str) -> None:
        await self._http.ask(replays.ForkDropped, "DELETE", f"/groups/{word(group)}/fork/{word(fork)}")

    # -- what waits for its time

    async def delayed(self, topic: str, limit: int = 100, skip: int = 0) -> list[delays.DelayedMessage]:
        """The soonest first."""
        query = {"limit": limit, "skip": skip}
        path = f"/topics/{word(topic)}/delayed"
        return (await self._http.ask(delays.DelayedMessages, "GET", path, query=query)).messages

    async def all_delayed(self, topic: str) -> AsyncIterator[delays.DelayedMessage]:
        """By partition and offset, however many they are."""
        cursor: str | None = "0/0"
        while cursor is not None:
            query = {"limit": PAGE, "cursor": cursor}
            page = await self._http.ask(delays.DelayedMessages, "GET", f"/topics/{word(topic)}/delayed", query=query)
            for message in page.messages:
                yield message
            cursor = page.next

    async def cancel(self, topic: str, partition: int, offset: int) -> None:
        """Never publish it."""
        await self._http.ask(delays.Cancelled, "DELETE", f"/topics/{word(topic)}/delayed/{partition}/{offset}")

    async def reschedule(
        self, topic: str, partition: int, offset: int, *, delay: Duration | None = None, at: Moment | None = None
    ) -> delays.DelayedMessage:
        """Publish it `delay` from now, or `at` a time, instead."""
        if (delay is None) == (at is None):
            raise InvalidArgument("say either delay or at")
        path, body = f"/topics/{word(topic)}/delayed/{partition}/{offset}", {"delay": delay, "deliver_at": at}
        return await self._http.ask(delays.DelayedMessage, "PATCH", path, body)

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
        body = {
            "topic": topic,
            "cron": cron,
            "timezone": timezone,
            "value": value,
            "key": key,
            "headers": headers,
            "priority": priority,
        }
        return await self._http.ask(delays.Schedule, "PUT", f"/schedules/{word(name)}", body)

    async def schedules(self, limit: int = 100, skip: int = 0) -> list[delays.Schedule]:
        query = {"limit": limit, "skip": skip}
        return (await self._http.ask(delays.Schedules, "GET", "/schedules", query=query)).schedules

    async def delete_schedule(self, name: str) -> None:
        await self._http.ask(delays.ScheduleDeleted, "DELETE", f"/schedules/{word(name)}")
