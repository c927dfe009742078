"""Where metadata is kept, as all that use it see it: keys with values, a revision for each change, and changes that are
made only if what they were decided from is still so. A node that is its own cluster keeps it in its data directory; a
cluster keeps it elsewhere, behind the same three calls.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from goqueue.model.errors import GoQueueError
from goqueue.model.metadata import Committed, Conflict, Event, Listing, Step

OnListed = Callable[[Listing], None]
OnEvents = Callable[[Sequence[Event]], None]
OnDone = Callable[[Committed | Conflict | GoQueueError], None]
"""An error: it may have been done or not. Read before it is tried again."""


class Store(Protocol):
    def list(self, on_listed: OnListed) -> None:
        """What nothing can take back any more."""

    def watch(self, on_events: OnEvents, on_lost: Callable[[], None]) -> None:
        """Be told of every change behind the last listing, those of one change together and in order. `on_lost`: some
        may have been missed, list anew."""

    def txn(self, step: Step, on_done: OnDone) -> None:
        """All of its puts, if all of its compares hold, else nothing."""
