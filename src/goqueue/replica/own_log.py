"""A leader as those see it who want no more than its own log to have their records (acks 1): its followers may lack
them, and then a change of the leader loses them.
"""

from collections.abc import Callable
from typing import Protocol

from goqueue.model.errors import GoQueueError


class Stores(Protocol):
    @property
    def failure(self) -> GoQueueError | None: ...

    @property
    def start_offset(self) -> int: ...

    def when_stored(self, offset: int, call: Callable[[], None], /) -> None: ...


class OwnLog:
    def __init__(self, replica: Stores) -> None:
        self._replica = replica

    @property
    def failure(self) -> GoQueueError | None:
        return self._replica.failure

    @property
    def start_offset(self) -> int:
        return self._replica.start_offset

    def when_reached(self, offset: int, call: Callable[[], None]) -> None:
        self._replica.when_stored(offset, call)
