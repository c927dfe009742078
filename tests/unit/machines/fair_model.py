"""What a fair lane promises, said naively: looked at record by record, from what was given out."""

from collections.abc import Mapping, Sequence

from goqueue.machines.deliveries.fair import TURN_EVERY, USED_LITTLE, FairQueues
from goqueue.machines.deliveries.window import LANE_BITS, LEASED, Window
from goqueue.model.lanes import LANES
from tests.unit.machines.delivery_model import Known

SENDERS = 6


class FairModel:
    def __init__(self) -> None:
        self.touched: set[int] = set()
        """Offsets that were leased since they were observed: they come first among those of their sender."""
        self.waited: dict[tuple[int, int], int] = {}
        """By lane and sender, how many others were served while it had something."""
        self.used: dict[tuple[int, int], int] = {}
        """By lane and sender, how many were served, at most, since it had nothing."""

    def forget(self) -> None:
        self.touched.clear()
        self.waited.clear()
        self.used.clear()

    def check(self, log: Sequence[Known], before: Mapping[int, Known], given: Sequence[int], by_key: bool) -> None:
        """`before`: what could be delivered. `given`: what was, in order; not yet noted in `log`."""
        for lane in range(LANES):
            picked = [offset for offset in given if before[offset].span.lane == lane]
            left = {offset: known for offset, known in before.items() if known.span.lane == lane}
            held: dict[int, int] = {}
            for known in log:
                if known.lease and known.span.lane == lane:
                    held[known.span.sender] = held.get(known.span.sender, 0) + 1
            self._check_lane(lane, picked, left, held, by_key)

    def _check_lane(
        self, lane: int, picked: Sequence[int], left: dict[int, Known], held: dict[int, int], by_key: bool
    ) -> None:
        by_turn = 0
        for offset in picked:
            sender = left[offset].span.sender
            waiting = {known.span.sender for known in left.values()}
            least = min(self.used.get((lane, each), 0) + held.get(each, 0) for each in waiting)
            if held.get(sender, 0) > max(USED_LITTLE + 1, 3 * least):
                by_turn += 1
            own = [each for each, known in left.items() if known.span.sender == sender]
            fresh = [each for each in own if each not in self.touched and not left[each].attempts]
            if not by_key and offset in fresh:
                assert offset == min(fresh)
                assert not self.touched.intersection(own), "what is ready again comes first"
            del left[offset]
            held[sender] = held.get(sender, 0) + 1
            self.used[lane, sender] = self.used.get((lane, sender), 0) + 1
            for each in waiting - {sender}:
                waited = self.waited[lane, each] = self.waited.get((lane, each), 0) + 1
                assert waited <= TURN_EVERY * (SENDERS + 1)
            self.waited.pop((lane, sender), None)
            for gone in [key for key in self.waited if key[0] == lane and key[1] not in waiting]:
                del self.waited[gone]
        assert by_turn <= len(picked) // TURN_EVERY + 1


def check_fair(window: Window, fair: FairQueues) -> None:
    """What is counted by sender is what the window holds, and all of it can be found."""
    active: set[int] = set()
    for lane, state in enumerate(fair._lanes):
        ready: dict[int, list[int]] = {}
        leased: dict[int, int] = {}
        for index, kind in enumerate(window.kinds):
            sender = fair.sender_at(index)
            if kind == lane:
                ready.setdefault(sender, []).append(window.base + index)
            elif kind == LEASED | lane:
                leased[sender] = leased.get(sender, 0) + 1
            assert kind & LANE_BITS < LANES
        active |= ready.keys() | leased.keys()
        for sender, line in state.lines.items():
            assert (line.ready, line.leased) == (len(ready.get(sender, ())), leased.get(sender, 0))
            assert sorted(fair._walk(line, lane, window.kinds, window.base, None)) == ready.get(sender, [])
        assert ready.keys() | leased.keys() <= state.lines.keys()
        assert state.turns.keys() == ready.keys()
        levels = {sender: level for level, senders in state.levels.items() for sender in senders}
        assert levels == {sender: state.lines[sender].level for sender in ready}
        assert all(state.levels.values())
    assert fair.active >= len(active)
    assert set(fair._tails) - active <= fair._idle.keys()
