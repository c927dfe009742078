"""What facts do to deliveries, now or at replay. Nothing else changes them."""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from goqueue.machines.deliveries.blocks import blocks_of
from goqueue.machines.deliveries.commands import OWN_WINDOW, Place, Tally
from goqueue.machines.deliveries.deadlines import Deadlines
from goqueue.machines.deliveries.facts import (
    BLOCK_KEY,
    DEAD_KEY,
    OPTIONS,
    PROGRESS,
    REPLAY,
    BlockForgotten,
    BlockStored,
    Change,
    Changed,
    ClockShifted,
    DeadForgotten,
    DeadStored,
    Extended,
    Leased,
    Observed,
    Opened,
    OptionsForgotten,
    OptionsStored,
    Progress,
    ProgressForgotten,
    ReplayBegun,
    ReplayForgotten,
    ReplayStored,
    SettledStored,
    TimePassed,
    WindowReset,
    Woken,
)
from goqueue.machines.deliveries.leases import HeldLease, Leases
from goqueue.machines.deliveries.look import block_due_ms
from goqueue.machines.deliveries.place import Delivery
from goqueue.machines.deliveries.places import Places
from goqueue.machines.deliveries.ticks import FINISHED, PAUSE_MS, RATE, Spot
from goqueue.machines.deliveries.window import DEAD, GAP, LEASED, SETTLED, UNDONE, WAITING, Window
from goqueue.machines.groups.commands import key_parts
from goqueue.machines.machine import Fact
from goqueue.machines.name_table import NameTable

_WAS_LEASED = range(LEASED, WAITING)


class DeliveryState:
    def __init__(self) -> None:
        self.places = Places()
        self.options: NameTable[dict[str, str]] = NameTable()
        self.leases = Leases()
        self.spots: Deadlines[Spot] = Deadlines()
        self.woken: dict[Place, None] = {}
        self.dying: dict[Place, None] = {}
        self.tally = Tally()
        self.unstored: dict[Place, list[Any]] = {}
        """What was settled directly in this turn: see `Direct`."""

    def apply(self, fact: Any) -> None:
        self._APPLIERS[type(fact)](self, fact)

    def forget(self, key: bytes) -> None:
        """Also of what is not there: a ledger may keep a tombstone longer than what it covers."""
        match key_parts(key):
            case [kind, str(group_id)] if kind == OPTIONS:
                self.options.pop(group_id, None)
            case [kind, str(group_id), str(topic), int(partition), int(number)]:
                place = Place(group_id, topic, partition)
                fact = {PROGRESS: ProgressForgotten, REPLAY: ReplayForgotten, DEAD_KEY: DeadForgotten}[str(kind)]
                self.apply(fact(place, number))
            case [kind, str(group_id), str(topic), int(partition), int(window), int(number)] if kind == BLOCK_KEY:
                self.apply(BlockForgotten(Place(group_id, topic, partition), window, number))
            case _:
                raise ValueError(f"no key of a delivery: {key!r}")

    def facts(self) -> Iterator[Fact]:
        for group_id, options in self.options.items():
            yield OptionsStored(group_id, options)
        for place, delivery in self.places.items():
            if delivery.topic_id is None:  # its progress was damaged: nobody knows where to go on
                continue
            yield from delivery.replay_facts.values()
            for window in delivery.windows():
                yield Progress(place, window.number, delivery.topic_id, window.stored_start)
                yield from window.stored.values()
            yield from delivery.dead.values()

    def _woken(self, fact: Woken) -> None:
        self.woken[fact.place] = None

    # What is stored

    def _delivery(self, place: Place) -> Delivery:
        delivery = self.places.get(place)
        if delivery is None:
            delivery = self.places.add(Delivery(place))
        return delivery

    def _progress(self, fact: Progress) -> None:
        delivery = self._delivery(fact.place)
        if delivery.topic_id != fact.topic_id:
            delivery.set_topic(fact.topic_id)
        window = delivery.window(fact.window)
        if window is not None:
            window.stored_start = fact.start_offset
            if window.kinds:
                if fact.start_offset > window.start:
                    window.advance(fact.start_offset)
            else:
                window.clear(fact.start_offset, delivery.policy.orders_by_key)
            self._look_whether_finished(delivery, window)

    def _progress_forgotten(self, fact: ProgressForgotten) -> None:
        if fact.window == OWN_WINDOW and self.places.remove(fact.place) is not None:
            self.leases.drop_place(fact.place)
            self.woken.pop(fact.place, None)
            self.dying.pop(fact.place, None)

    def _block(self, fact: BlockStored) -> None:
        window = self._delivery(fact.place).window(fact.window)
        if window is not None:
            window.stored[fact.number] = fact

    def _block_forgotten(self, fact: BlockForgotten) -> None:
        delivery = self.places.get(fact.place)
        window = None if delivery is None else delivery.window(fact.window)
        if window is not None:
            window.stored.pop(fact.number, None)

    def _dead(self, fact: DeadStored) -> None:
        self._delivery(fact.place).dead[fact.letter.offset] = fact
        self.dying[fact.place] = None

    def _dead_forgotten(self, fact: DeadForgotten) -> None:
        delivery = self.places.get(fact.place)
        if delivery is not None:
            delivery.dead.pop(fact.offset, None)
            self._wake_if_ready(delivery)

    def _replay(self, fact: ReplayStored) -> None:
        self._delivery(fact.place).add_replay(fact)

    def _replay_begun(self, fact: ReplayBegun) -> None:
        self.places[fact.place].replays[fact.window].takes_old = False

    def _replay_forgotten(self, fact: ReplayForgotten) -> None:
        delivery = self.places.get(fact.place)
        if delivery is not None:
            delivery.drop_replay(fact.window)

    def _options_stored(self, fact: OptionsStored) -> None:
        self.options[fact.group_id] = fact.options

    def _options_forgotten(self, fact: OptionsForgotten) -> None:
        self.options.pop(fact.group_id, None)

    # What is not

    def _opened(self, fact: Opened) -> None:
        delivery = self.places[fact.place]
        delivery.is_open = True
        if fact.is_new:
            delivery.own.takes_old = False
        old, new = delivery.policy, fact.policy
        is_other_order = (old.orders_by_key, old.fair_by) != (new.orders_by_key, new.fair_by)
        delivery.policy = fact.policy
        if is_other_order:
            self.leases.drop_place(fact.place)
            delivery.reorder(self.leases.next_number)
        self.woken[fact.place] = None

    def _reset(self, fact: WindowReset) -> None:
        self.leases.drop_place(fact.place)
        self.places[fact.place].reset(fact.start_offset)

    def _observed(self, fact: Observed) -> None:
        delivery = self.places[fact.place]
        window = delivery.window(fact.window)
        assert window is not None
        for block, due_ms in window.observe(fact.spans, delivery.dead, fact.now_ms):
            self.spots.note((fact.place, fact.window, block), due_ms)
        if fact.window == OWN_WINDOW:
            for span in fact.spans:
                if span.is_visible:
                    delivery.arrived[span.lane] += span.last + 1 - span.first
        self._look_whether_finished(delivery, window)
        self._wake_if_ready(delivery)

    def _leased(self, fact: Leased) -> None:
        delivery = self.places[fact.place]
        runs = [(pick.window, pick.first, pick.last) for pick in fact.picks]
        lease = HeldLease(fact.place, fact.consumer, fact.now_ms, fact.deadline_ms, runs)
        for pick in fact.picks:
            window = delivery.window(pick.window)
            assert window is not None
            window.lease(pick.lane, pick.first, pick.last, fact.number, fact.now_ms, is_fresh=pick.is_fresh)
            count = pick.last + 1 - pick.first
            lease.left += count
            delivery.served[pick.lane] += count
        for number, shares in fact.shares:
            window = delivery.window(number)
            assert window is not None
            window.shares = shares
        delivery.turn = fact.turn
        self.tally.leased += lease.left
        delivery.unacked[fact.consumer] = delivery.unacked.get(fact.consumer, 0) + lease.left
        self.leases.add(fact.number, lease)
        if delivery.rates:
            self._take_rates(delivery, fact)

    def _take_rates(self, delivery: Delivery, fact: Leased) -> None:
        for number, rate in delivery.rates.items():
            count = sum(pick.last + 1 - pick.first for pick in fact.picks if pick.window == number)
            if count:
                self.spots.note((fact.place, number, RATE), rate.take(count, fact.now_ms))

    def _changed(self, fact: Changed) -> None:
        delivery = self.places[fact.place]
        window = delivery.window(fact.window)
        assert window is not None
        for what, count in fact.counted:
            setattr(self.tally, what, getattr(self.tally, what) + count)
        for change in fact.changes:
            if change.last < window.end and change.first >= window.base:
                self._change(delivery, window, change, fact.now_ms)
            elif change.first < window.end and change.last >= window.base:
                first, last = max(change.first, window.base), min(change.last, window.end - 1)
                self._change(delivery, window, change._replace(first=first, last=last), fact.now_ms)
        window.advance(window.start)
        if fact.window != OWN_WINDOW:
            self._look_whether_finished(delivery, window)

    def _settled_stored(self, fact: SettledStored) -> None:
        del self.unstored[fact.place]
        window = self.places[fact.place].own
        window.advance(window.start)

    def _change(self, delivery: Delivery, window: Window, change: Change, now_ms: int) -> None:
        first, last, state, lease, visible_at_ms, attempts, *_ = change
        if lease:
            self.release(delivery, lease, last + 1 - first)
        elif any(window.counts[LEASED:WAITING]):
            for number, low, high in window.leased_runs(first, last):
                self.release(delivery, number, high + 1 - low)
        if state == UNDONE:
            window.undo(first, last, now_ms)
        else:
            old = window.turn(first, last, state, now_ms)
            if window.keys is not None and DEAD <= state < GAP:
                for block, due_ms in window.free_keys(first, old, now_ms):
                    self.spots.note((delivery.place, window.number, block), due_ms)
                self._wake_if_ready(delivery)
        if attempts:
            window.attempts[first - window.base : last + 1 - window.base] = bytes((attempts,)) * (last + 1 - first)
        if state == WAITING:
            for block in blocks_of(first, last):
                self.spots.note((delivery.place, window.number, block), visible_at_ms)
        if state != SETTLED:
            self._note_expiries(delivery, window, first, last)
            self._wake_if_ready(delivery)

    def _note_expiries(self, delivery: Delivery, window: Window, first: int, last: int) -> None:
        if window.expires:
            for block in blocks_of(first, last):
                due_ms = block_due_ms(window, block) if block in window.expires else None
                if due_ms is not None:
                    self.spots.note((delivery.place, window.number, block), due_ms)

    def release(self, delivery: Delivery, number: int, count: int) -> None:
        """So many records of a lease are no longer leased."""
        consumer = self.leases.release(number, count).consumer
        held = delivery.unacked[consumer]
        if held >= delivery.policy.unacked_max:
            self.woken[delivery.place] = None
        if held > count:
            delivery.unacked[consumer] = held - count
        else:
            del delivery.unacked[consumer]

    def _extended(self, fact: Extended) -> None:
        for number, first, last in fact.parts:
            lease = self.leases.get(number)
            assert lease is not None
            lease.extend(first, last, fact.deadline_ms)
            self.tally.extended += last + 1 - first
            self.leases.deadlines.note(number, fact.deadline_ms)

    def _time_passed(self, fact: TimePassed) -> None:
        for number in fact.leases:
            self.leases.deadlines.drop(number)
            self.leases.note(number, fact.now_ms)
        for spot in fact.spots:
            self.spots.drop(spot)
            self._note_anew(spot, fact.now_ms)
        self.leases.deadlines.passed()
        self.spots.passed()

    def _shifted(self, fact: ClockShifted) -> None:
        self.leases.shift(fact.by_ms)
        for delivery in self.places.values():
            delivery.shift(fact.by_ms)
        # A block may wait for a delay, which lasts as long as before, or for the end of a record's life, which does
        # not: it is looked at at once. A rate is not: nothing would note it again.
        self.spots.move(lambda spot, due_ms: due_ms + fact.by_ms if spot[2] == RATE else 0)

    def _note_anew(self, spot: Spot, now_ms: int) -> None:
        place, number, block = spot
        delivery = self.places.get(place)
        window = None if delivery is None else delivery.window(number)
        if delivery is None or window is None:
            return
        self._wake_if_ready(delivery)
        if block >= 0:
            due_ms = block_due_ms(window, block)
            if due_ms is not None:
                # Still due: dead letters have to be written first.
                self.spots.note(spot, due_ms if due_ms > now_ms else now_ms + PAUSE_MS)

    def _look_whether_finished(self, delivery: Delivery, window: Window) -> None:
        if window.is_finished:
            self.spots.note((delivery.place, window.number, FINISHED), 0)

    def _wake_if_ready(self, delivery: Delivery) -> None:
        if any(window.has_ready() for window in delivery.windows()):
            self.woken[delivery.place] = None

    # Of the class, not of each one: whoever holds its own methods is left to the collector of cycles.
    _APPLIERS: ClassVar[dict[type, Callable[[Any, Any], None]]] = {
        Leased: _leased,
        Changed: _changed,
        Progress: _progress,
        BlockStored: _block,
        BlockForgotten: _block_forgotten,
        SettledStored: _settled_stored,
        Observed: _observed,
        Extended: _extended,
        TimePassed: _time_passed,
        ClockShifted: _shifted,
        DeadStored: _dead,
        DeadForgotten: _dead_forgotten,
        Opened: _opened,
        WindowReset: _reset,
        ReplayStored: _replay,
        ReplayBegun: _replay_begun,
        ReplayForgotten: _replay_forgotten,
        ProgressForgotten: _progress_forgotten,
        OptionsStored: _options_stored,
        OptionsForgotten: _options_forgotten,
        Woken: _woken,
    }
