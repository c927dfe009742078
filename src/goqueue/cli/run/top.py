"""`goqueue top`: which topics and groups are busy, and who falls behind, now."""

import shutil
import time
from typing import Any, NamedTuple

from goqueue.cli.call import Call
from goqueue.cli.output import Column, size
from goqueue.cli.run.groups import numbers_of
from goqueue.cli.watch import watch

LINES_AROUND = 9
"""Titles, headings and empty lines."""
ROWS_MIN = 5


class TopicRate(NamedTuple):
    name: str
    messages_per_second: float | None
    """None: there is nothing to compare with yet."""
    messages: int
    size_bytes: int


class GroupRate(NamedTuple):
    group: str
    type: str
    state: str
    ready: int | None
    leased: int | None
    waiting: int | None
    lag: int
    lag_per_second: float | None
    """Above 0: it falls behind."""


class Before(NamedTuple):
    at_s: float
    published: dict[str, int]
    lags: dict[str, int]


async def top(call: Call) -> int:
    return await watch(Looking(call).look, call.given.every, "top", call.given.times)


class Looking:
    def __init__(self, call: Call) -> None:
        self._call = call
        self._before: Before | None = None

    async def look(self) -> None:
        stats = (await self._call.admin.stats()).topic_stats
        groups = [numbers_of(each) for each in await self._call.admin.lags()]
        now_s, before = time.monotonic(), self._before
        self._before = Before(
            now_s,
            {name: each.published for name, each in stats.items()},
            {each.group: each.lag for each in groups},
        )
        topics = [
            TopicRate(name, _rate(each.published, name, before and before.published, before, now_s), *_held(each))
            for name, each in stats.items()
        ]
        rated = [
            GroupRate(*each, _rate(each.lag, each.group, before and before.lags, before, now_s)) for each in groups
        ]
        self._show(
            sorted(topics, key=lambda each: (-(each.messages_per_second or 0), -each.messages, each.name)),
            sorted(rated, key=lambda each: (-each.lag, each.group)),
        )

    def _show(self, topics: list[TopicRate], groups: list[GroupRate]) -> None:
        out = self._call.out
        if not out.is_for_a_person:
            out.data({"topics": [each._asdict() for each in topics], "groups": [each._asdict() for each in groups]})
            return
        rows = max(ROWS_MIN, (shutil.get_terminal_size().lines - LINES_AROUND) // 2)
        out.rows(topics[:rows], TOPIC_COLUMNS, nothing="no topics yet")
        if groups:
            out.line("")
            out.rows(groups[:rows], GROUP_COLUMNS)


def _held(stats: Any) -> tuple[int, int]:
    return stats.total_messages, stats.total_size


def _rate(now: int, name: str, known: dict[str, int] | None, before: Before | None, now_s: float) -> float | None:
    if before is None or known is None or name not in known or now_s <= before.at_s:
        return None
    return round((now - known[name]) / (now_s - before.at_s), 1)


def _per_second(rate: float | None) -> str | None:
    return None if rate is None else f"{rate:,.1f}"


TOPIC_COLUMNS = (
    Column("TOPIC", lambda each: each.name),
    Column("MSG/S", lambda each: _per_second(each.messages_per_second), is_number=True),
    Column("MESSAGES", lambda each: f"{each.messages:,}", is_number=True),
    Column("SIZE", lambda each: size(each.size_bytes), is_number=True),
)
GROUP_COLUMNS = (
    Column("GROUP", lambda each: each.group),
    Column("TYPE", lambda each: each.type),
    Column("STATE", lambda each: each.state),
    Column("READY", lambda each: each.ready, is_number=True),
    Column("LEASED", lambda each: each.leased, is_number=True),
    Column("WAITING", lambda each: each.waiting, is_number=True),
    Column("LAG", lambda each: f"{each.lag:,}", is_number=True),
    Column("LAG/S", lambda each: _per_second(each.lag_per_second), is_number=True),
)
