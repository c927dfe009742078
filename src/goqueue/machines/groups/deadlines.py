"""Which group's deadline comes first: heartbeats move deadlines away all the time, so that is noticed only when the
time noted for a group has come.
"""

from collections.abc import Callable
from typing import ClassVar

from goqueue.machines.deadlines import Deadlines
from goqueue.machines.machine import Fact

_DUE_MAX = 1000  # per tick: what is left is due at once in the next


class TimePassed(Fact, frozen=True):
    """All that was due at this time has been decided."""

    durable: ClassVar[bool] = False
    now_ms: int
    next_expiry_ms: int
    expiry_after: str | None = None
    """The last group that was looked at; None: all were."""


class GroupDeadlines:
    """Invariant: every group with a deadline is noted, for that time or an earlier one; a group that is gone is not."""

    def __init__(self) -> None:
        self._noted = Deadlines()

    def note(self, group_id: str, deadline_ms: int | None) -> None:
        """Something happened in the group that came with a deadline."""
        noted_ms = self._noted.get(group_id)
        if deadline_ms is not None and (noted_ms is None or deadline_ms < noted_ms):
            self._noted.set(group_id, deadline_ms)

    def drop(self, group_id: str) -> None:
        """The group is gone."""
        self._noted.clear(group_id)

    def earliest_ms(self) -> int | None:
        return self._noted.earliest_ms()

    def due(self, now_ms: int) -> list[str]:
        """Groups whose time may have come."""
        return self._noted.due(now_ms, _DUE_MAX)

    def pass_until(self, now_ms: int, actual_ms: Callable[[str], int | None]) -> None:
        """The groups that were due have been looked at. Whoever was not, or is due again, will be. `actual_ms`: of a
        group; not kept, since it is its owner's."""
        for group_id in self.due(now_ms):
            self._noted.clear(group_id)
            self.note(group_id, actual_ms(group_id))
