"""What is the matter with one record, as one group sees it now: the question of whoever waits for it."""

from enum import StrEnum
from typing import NamedTuple

from goqueue.machines.deliveries.blocks import BLOCK, FOREVER, ranges_of, unpack_bits
from goqueue.machines.deliveries.commands import OWN_WINDOW
from goqueue.machines.deliveries.leases import HeldLease, Leases
from goqueue.machines.deliveries.place import DEAD_MAX, Delivery
from goqueue.machines.deliveries.window import DEAD, GAP, HELD, LANE_BITS, LEASED, READY, SETTLED, WAITING, Window
from goqueue.model.lanes import LANES

NOBODY = -1


class Matter(StrEnum):
    READY = "ready"
    LEASED = "leased"
    WAITING = "waiting"
    """For its next attempt."""
    HELD = "held"
    """Behind another record of its key."""
    DYING = "dying"
    """Its dead letter is being written."""
    SETTLED = "settled"
    NOT_FOR_US = "not for this group"
    """A marker, an aborted transaction, or nothing."""
    NOT_SEEN = "not looked at yet"


_MATTERS = {
    READY: Matter.READY,
    LEASED: Matter.LEASED,
    WAITING: Matter.WAITING,
    HELD: Matter.HELD,
    DEAD: Matter.DYING,
    SETTLED: Matter.SETTLED,
    GAP: Matter.NOT_FOR_US,
}


class RecordState(NamedTuple):
    matter: Matter
    lane: int = 0
    attempts: int = 0
    """Deliveries so far, the current one too. Not of what is settled: of that they are not stored, and are forgotten
    sooner or later."""
    consumer: str = ""
    until_ms: int = 0
    """Of a lease: its end. Of what waits: when it is ready."""
    behind: int = NOBODY
    """Of what is held: the offset that goes before it."""
    ahead: int = 0
    """Of what is ready: records of its lane that are ready before it."""
    ahead_in_lanes: tuple[int, ...] = ()
    """Ready records by lane."""
    expires_at_ms: int | None = None
    reason: str = ""
    """Of what is dying: why."""
    is_replay: bool = False
    is_choked: bool = False
    """So many dead letters have to be written first that nothing is leased."""


def state_of_record(delivery: Delivery, leases: Leases, offset: int) -> RecordState:
    ((window, _, _),) = delivery.parts(offset, offset)
    if offset >= window.end:
        return _unseen(window, offset)
    kind = window.kind_at(offset)
    index = offset - window.base
    matter = _MATTERS[kind & ~LANE_BITS]
    seen = RecordState(
        matter,
        lane=kind & LANE_BITS,
        attempts=window.attempts[index] if index >= 0 and matter is not Matter.SETTLED else 0,
        expires_at_ms=_expiry(window, offset),
        is_replay=window.number != OWN_WINDOW,
    )
    match seen.matter:
        case Matter.LEASED:
            return _leased(seen, leases.get(window.lease_of[index]), offset)
        case Matter.WAITING:
            retry = window.retry_of(offset)
            return seen._replace(until_ms=0 if retry is None else retry.visible_at_ms)
        case Matter.HELD:
            return seen._replace(behind=_head(window, index))
        case Matter.DYING:
            dead = delivery.dead.get(offset)
            return seen._replace(reason="" if dead is None else _why(dead.letter))
        case Matter.READY:
            seen = seen._replace(
                ahead=window.kinds.count(seen.lane, window.start - window.base, index),
                ahead_in_lanes=tuple(window.counts[:LANES]),
                is_choked=len(delivery.dead) >= DEAD_MAX,
            )
    return seen


def _leased(seen: RecordState, held: HeldLease | None, offset: int) -> RecordState:
    if held is None:
        return seen
    own_ms = None if held.own_deadlines_ms is None else held.own_deadlines_ms.get(offset)
    return seen._replace(consumer=held.consumer, until_ms=held.deadline_ms if own_ms is None else own_ms)


def _unseen(window: Window, offset: int) -> RecordState:
    """Before it was observed, only what is stored is known of it."""
    block = window.stored.get(offset // BLOCK)
    if block is not None:
        for first, last in ranges_of(block.number, unpack_bits(block.settled)):
            if first <= offset <= last:
                return RecordState(Matter.SETTLED)
    return RecordState(Matter.NOT_SEEN)


def _expiry(window: Window, offset: int) -> int | None:
    times = window.expires.get(offset // BLOCK)
    expires_at_ms = FOREVER if times is None else times[offset % BLOCK]
    return None if expires_at_ms == FOREVER else expires_at_ms


def _head(window: Window, index: int) -> int:
    """The first record of the same key that is not done."""
    if window.keys is None:
        return NOBODY
    found = window.keys.first_like(index, window.start - window.base, window.kinds, DEAD)
    return NOBODY if found is None else window.base + found


def _why(letter: tuple[object, ...]) -> str:
    _, reason, error, *_ = letter
    return f"{reason}: {error}" if error else str(reason)
