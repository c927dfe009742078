"""What somebody who looks after queues asks for: dead letters sent back, groups sent elsewhere, copied or dropped."""

from collections.abc import Mapping, Sequence
from typing import Any

from goqueue.model.errors import GoQueueError
from goqueue.records.filters import RecordFilter
from goqueue.records.redrives import RedriveReport, RedriveRequest
from goqueue.records.replays import Difference, Moved, Replayed, ReplayRequest, Where
from goqueue.testing.broker_life import BrokerLife

Filter = RecordFilter | Mapping[str, str] | None
"""Or by name, as `{"key": "anna", "reason": "rejected", "header.tenant": "x", "from": "-1h"}`."""


class BrokerCare(BrokerLife):
    """A place in a topic is `"earliest"`, `"latest"`, an offset (a number) or a time (a text, `"-1h"`)."""

    # -- dead letters

    async def redrive(
        self,
        topic: str,
        *,
        to: str | None = None,
        filter: Filter = None,
        dry_run: bool = False,
        rate: int = 0,
        redrives_max: int = 3,
    ) -> RedriveReport:
        """Send the dead letters of `topic` back to where they came from, or `to` another topic. With a `rate` this
        takes its time: advance meanwhile.
        """
        request = RedriveRequest(topic, to, self._filter(filter), dry_run, rate, redrives_max)
        report: RedriveReport | GoQueueError = await self.ask(
            lambda done: self.broker.dead_letters.redrive(request, done)
        )
        assert isinstance(report, RedriveReport)
        return report

    async def purge(self, topic: str) -> int:
        """Delete the dead letters of `topic`, for everybody. Returns how many there were."""
        purged: int | GoQueueError = await self.ask(lambda done: self.broker.dead_letters.purge(topic, done))
        assert isinstance(purged, int)
        return purged

    # -- reading again

    async def replay(  # noqa: PLR0913  what may be said about a replay
        self,
        topic: str,
        group: str = "workers",
        *,
        start: str | int,
        stop: str | int = "latest",
        filter: Filter = None,
        partitions: Sequence[int] | None = None,
        rate: int = 0,
        dry_run: bool = False,
        fork_as: str | None = None,
    ) -> list[Replayed]:
        """Deliver `[start, stop)` to a queue group once more, or to a copy of it. By partition, how many."""
        now_ms = self.now_ms
        request = ReplayRequest(
            group,
            topic,
            Where.parse(start, now_ms),
            Where.parse(stop, now_ms),
            self._filter(filter),
            partitions,
            rate,
            dry_run,
            fork_as,
        )
        done: Any = await self.ask(lambda done: self.broker.replays.replay(request, done))
        return sorted(done)

    async def seek(
        self,
        topic: str,
        group: str = "workers",
        *,
        to: str | int,
        partitions: Sequence[int] | None = None,
        dry_run: bool = False,
    ) -> list[Moved]:
        """Let a queue group go on from elsewhere, now. Leases end."""
        where = Where.parse(to, self.now_ms)
        moved: Any = await self.ask(
            lambda done: self.broker.replays.seek(group, topic, where, done, partitions=partitions, is_dry_run=dry_run)
        )
        return sorted(moved)

    async def seek_stream(
        self,
        topic: str,
        group: str,
        *,
        to: str | int,
        partitions: Sequence[int] | None = None,
        dry_run: bool = False,
        live: bool = False,
    ) -> list[Moved]:
        """Let a group of stream readers go on from elsewhere; `live`: also while it has members."""
        where = Where.parse(to, self.now_ms)
        moved: Any = await self.ask(
            lambda done: self.broker.replays.seek_stream(
                group, topic, where, done, partitions=partitions, is_dry_run=dry_run, is_live=live
            )
        )
        return sorted(moved)

    async def fork(self, group: str, name: str) -> None:
        """A copy of what a queue group has settled, that goes its own way."""
        await self._done(lambda done: self.broker.replays.fork(group, name, done))

    async def compare(self, group: str, other: str) -> list[Difference]:
        """What only one of two queue groups has settled. Empty: they are alike."""
        return self.broker.replays.compare(group, other)

    async def promote(self, group: str, fork: str) -> None:
        """The group takes over what its fork has settled; the fork is gone."""
        await self._done(lambda done: self.broker.replays.promote(fork, group, done))

    # -- groups

    async def drop_group(self, group: str) -> None:
        """Forget a queue group, or a fork."""
        await self._done(lambda done: self.broker.queues.drop(group, None, done))

    async def set_group_options(self, group: str, **options: str | int | None) -> None:
        """As of topics: `lease_ms=500`, or `**{"lease.ms": "500"}`; None takes one back."""
        changes = {name.replace("_", "."): None if value is None else str(value) for name, value in options.items()}
        await self._done(lambda done: self.broker.queues.set_options(group, changes, done))

    async def _done(self, submit: Any) -> None:
        await self.ask(submit)

    def _filter(self, given: Filter) -> RecordFilter:
        if isinstance(given, RecordFilter):
            return given
        return RecordFilter.parse(given or {}, self.now_ms)
