"""Where logs ended when their queue groups were loaded. What a group knows of records behind that is about records that
the log has lost, and is dropped before others stand there: they would count as settled, and never be delivered.

A full disk may have no room for the drop, though the log itself still has some. Until it is stored the partition takes
no appends; else a crash in between would leave a longer log, of which nobody could tell that it was shorter.
"""

from collections.abc import Callable

from goqueue.machines.deliveries.commands import Place
from goqueue.machines.deliveries.machine import Deliveries
from goqueue.model.errors import DiskFull, GoQueueError
from goqueue.replica.replica import Replica
from goqueue.runtime.coordinator import Coordinator


class LostEnds:
    def __init__(self, find_replica: Callable[[str, int], Replica | None]) -> None:
        self._find_replica = find_replica
        self._ends: dict[Place, int] = {}
        """Of places that were not opened yet since their load."""
        self._undropped: dict[Place, Coordinator[Deliveries]] = {}
        """Those that hold up appends to their partition."""

    def note(self, place: Place, log_end: int) -> None:
        self._ends[place] = min(log_end, self._ends.get(place, log_end))

    def of(self, place: Place) -> int | None:
        return self._ends.get(place)

    def tried(self, place: Place, coordinator: Coordinator[Deliveries], reply: object) -> None:
        """The place was opened with what `of` said of it, or there was no room for that."""
        if not isinstance(reply, GoQueueError):
            if place in self._undropped:
                coordinator.make_durable()  # whatever the topic's durability is: see above
            self.forget(place, coordinator)
        elif isinstance(reply, DiskFull) and place in self._ends:
            replica = self._find_replica(place.topic, place.partition)
            if replica is not None:
                self._undropped[place] = coordinator
                replica.hold_appends(DiskFull(f"no room to note what {replica.name} has lost; appends wait for that"))

    def forget(self, place: Place, coordinator: Coordinator[Deliveries]) -> None:
        """It is dropped, or the partition has another coordinator."""
        self._ends.pop(place, None)
        if self._undropped.get(place) is coordinator:
            del self._undropped[place]
            spot = place.topic, place.partition
            replica = self._find_replica(*spot)
            if replica is not None and all((each.topic, each.partition) != spot for each in self._undropped):
                replica.let_appends()
