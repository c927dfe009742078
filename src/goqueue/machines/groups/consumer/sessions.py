"""Who must be heard until when. Members may ask for sessions of different lengths, and few lengths are ever in use: one
queue for each length is in the order of its deadlines by itself.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from itertools import takewhile


@dataclass
class Sessions:
    """Invariant: a queue in `_queues` is not empty, and who is heard goes to its end.
    Invariant: a member is in one queue, the one that `_lengths_ms` names.
    """

    _queues: dict[int, OrderedDict[str, int]] = field(default_factory=dict)
    _lengths_ms: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._lengths_ms)

    def __contains__(self, member_id: str) -> bool:
        return member_id in self._lengths_ms

    def hear(self, member_id: str, at_ms: int, due_ms: int) -> None:
        length_ms = due_ms - at_ms
        if self._lengths_ms.get(member_id, length_ms) != length_ms:
            self.drop(member_id)
        queue = self._queues.setdefault(length_ms, OrderedDict())
        queue[member_id] = due_ms
        queue.move_to_end(member_id)
        self._lengths_ms[member_id] = length_ms

    def drop(self, member_id: str) -> None:
        length_ms = self._lengths_ms.pop(member_id, None)
        if length_ms is not None:
            del self._queues[length_ms][member_id]
            if not self._queues[length_ms]:
                del self._queues[length_ms]

    def heard_ms(self, member_id: str) -> int | None:
        """When that was last; after a restart, when the clock of a member began to run."""
        length_ms = self._lengths_ms.get(member_id)
        return None if length_ms is None else self._queues[length_ms][member_id] - length_ms

    def earliest_ms(self) -> int | None:
        return min((next(iter(queue.values())) for queue in self._queues.values()), default=None)

    def silent(self, now_ms: int) -> list[str]:
        """Whose time is over."""
        return [
            member_id
            for queue in self._queues.values()
            for member_id, _ in takewhile(lambda each: each[1] <= now_ms, queue.items())
        ]
