"""Who wants to hear when something was leased, settled or given back: once a turn, however much it was."""

from collections.abc import Callable

from goqueue.runtime.clock import Clock
from goqueue.telemetry.calls import call_each


class Watchers:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.by_group: dict[str, dict[Callable[[], None], None]] = {}
        self._is_due = False

    def add(self, group_id: str, call: Callable[[], None]) -> None:
        self.by_group.setdefault(group_id, {})[call] = None

    def remove(self, group_id: str, call: Callable[[], None]) -> None:
        watchers = self.by_group.get(group_id, {})
        watchers.pop(call, None)
        if not watchers:
            self.by_group.pop(group_id, None)

    def changed(self) -> None:
        if self.by_group and not self._is_due:
            self._is_due = True
            self._clock.call_soon(self._tell)

    def _tell(self) -> None:
        self._is_due = False
        call_each([call for watchers in self.by_group.values() for call in watchers])
