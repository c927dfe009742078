"""A slab of schedules: what is known of each lies in plain arrays, since a million objects would take ten times the
memory. A schedule is the number of its slot.
"""

from array import array
from collections.abc import Sequence
from operator import itemgetter

FREE, TIMED, READY, WAITING = range(4)
"""States: nobody's; in the wheel; due and not fired yet; waiting for the end of its transaction."""


class Slots:
    """Invariant: all arrays are equally long, and `state` is FREE for exactly the slots in `_free`."""

    __slots__ = ("_free", "body_bytes", "due_ms", "is_delay", "ledger_offset", "offset", "state")

    def __init__(self) -> None:
        self.due_ms = array("q")
        self.offset = array("q")
        self.ledger_offset = array("q")
        self.body_bytes = array("I")
        self.state = bytearray()
        self.is_delay = bytearray()
        """1: it waits for so long, 0: for a time."""
        self._free = array("I")

    def take(self, offset: int, due_ms: int, body_bytes: int, is_delay: bool = False) -> int:
        """A slot for a new schedule. Its taker sets the state."""
        if self._free:
            slot = self._free.pop()
            self.due_ms[slot] = due_ms
            self.offset[slot] = offset
            self.body_bytes[slot] = body_bytes
            self.is_delay[slot] = is_delay
            return slot
        self.due_ms.append(due_ms)
        self.offset.append(offset)
        self.ledger_offset.append(-1)
        self.body_bytes.append(body_bytes)
        self.state.append(WAITING)
        self.is_delay.append(is_delay)
        return len(self.state) - 1

    def take_many(
        self,
        offsets: "array[int]",
        due_ms: "array[int]",
        ledger_offsets: "array[int]",
        body_bytes: "array[int]",
        is_delay: bytes,
    ) -> range:
        first, count = len(self.state), len(offsets)
        self.due_ms.extend(due_ms)
        self.offset.extend(offsets)
        self.ledger_offset.extend(ledger_offsets)
        self.body_bytes.extend(body_bytes)
        self.state.extend(bytes([WAITING]) * count)
        self.is_delay.extend(is_delay or bytes(count))
        return range(first, first + count)

    def copy(self) -> "Slots":
        """As they are now, to be read only."""
        copied = Slots()
        copied.due_ms, copied.offset, copied.ledger_offset = self.due_ms[:], self.offset[:], self.ledger_offset[:]
        copied.body_bytes, copied.state = self.body_bytes[:], self.state[:]
        copied.is_delay = self.is_delay[:]
        return copied

    def give_back(self, slot: int) -> None:
        self.state[slot] = FREE
        self._free.append(slot)

    def give_back_many(self, slots: Sequence[int]) -> None:
        state = self.state
        for slot in slots:
            state[slot] = FREE
        self._free.extend(slots)

    def sort_by_due(self, slots: list[int]) -> None:
        """By due time, then by offset: two sorts with keys made in C cost less than one with pairs."""
        slots.sort(key=self.offset.__getitem__)
        slots.sort(key=self.due_ms.__getitem__)

    def gather(self, slots: Sequence[int]) -> tuple["array[int]", "array[int]", "array[int]", "array[int]"]:
        """Offsets, due times, ledger offsets and body sizes of `slots`."""
        if len(slots) == 1:
            columns = [(column[slots[0]],) for column in self._columns()]
        else:
            columns = list(map(itemgetter(*slots), self._columns()))  # twice as fast as one by one
        offsets, due_ms, ledger_offsets, body_bytes = columns
        return array("q", offsets), array("q", due_ms), array("q", ledger_offsets), array("I", body_bytes)

    def _columns(self) -> tuple["array[int]", ...]:
        return self.offset, self.due_ms, self.ledger_offset, self.body_bytes
