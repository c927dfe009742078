"""What a leader knows of transactions whose coordinator is another node (KIP-890): that a partition or group takes part
in one was asked of the coordinator once, and is remembered until the marker comes.

A marker that comes while the coordinator is being asked makes the answer void, even one that finds nothing to end: the
batch would stand behind it, and open the next transaction of the same producer and epoch.
"""

from collections.abc import Callable

from goqueue.machines.transactions.commands import Partition

Place = Partition | str
"""A partition, or a group."""
KNOWN_MAX = 100_000
"""Producers that are remembered in all places; the oldest is asked for again."""


class Question:
    """One that is being asked."""

    __slots__ = ("is_void", "places", "producer_id")

    def __init__(self, producer_id: int, places: tuple[Place, ...]) -> None:
        self.producer_id = producer_id
        self.places = places
        self.is_void = False


class Verified:
    def __init__(self) -> None:
        self._known: dict[tuple[int, Place], int] = {}
        """Producer and place: the epoch in which it takes part."""
        self._asked: dict[Question, None] = {}

    def has(self, producer_id: int, epoch: int, place: Place) -> bool:
        return self._known.get((producer_id, place)) == epoch

    def ask(self, producer_id: int, places: tuple[Place, ...]) -> Question:
        """The coordinator is being asked from now on."""
        question = Question(producer_id, places)
        self._asked[question] = None
        return question

    def end(self, question: Question) -> bool:
        """It has answered. False: a marker came meanwhile, or the place changed its leader; the answer says nothing."""
        self._asked.pop(question, None)
        return not question.is_void

    def note(self, producer_id: int, epoch: int, places: tuple[Place, ...]) -> None:
        for place in places:
            self._known.pop((producer_id, place), None)
            self._known[producer_id, place] = epoch
        while len(self._known) > KNOWN_MAX:
            del self._known[next(iter(self._known))]

    def ended(self, producer_id: int, place: Place) -> None:
        """A marker came."""
        self._known.pop((producer_id, place), None)
        for question in self._asked:
            if question.producer_id == producer_id and place in question.places:
                question.is_void = True

    def ended_in_groups(self, producer_id: int, is_meant: Callable[[str], bool]) -> None:
        """Offsets that it committed count now, or are forgotten, in these groups."""
        places = {key[1]: None for key in self._known if key[0] == producer_id}
        asked = {place: None for question in self._asked for place in question.places}
        for place in [*places, *asked]:
            if isinstance(place, str) and is_meant(place):
                self.ended(producer_id, place)

    def forget_place(self, place: Place) -> None:
        """Its leader is another one, or this node in another epoch: markers may have come that it does not know."""
        for key in [key for key in self._known if key[1] == place]:
            del self._known[key]
        for question in self._asked:
            if place in question.places:
                question.is_void = True
