"""What operators do to queue groups: seek, replay, drop, save and restore them."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from goqueue.machines.deliveries.blocks import (
    BLOCK,
    FOREVER,
    Range,
    Retry,
    bits_of,
    blocks_of,
    clipped,
    merged,
    pack_bits,
    pack_retries,
    ranges_of,
    split_retry,
    unpack_bits,
    unpack_retries,
    without,
    without_retries,
)
from goqueue.machines.deliveries.commands import (
    OWN_WINDOW,
    DeadLetter,
    Place,
    PlaceState,
    Replay,
    ReplayReply,
    Seek,
)
from goqueue.machines.deliveries.facts import (
    BlockForgotten,
    BlockStored,
    ClockShifted,
    DeadForgotten,
    DeadStored,
    Progress,
    ProgressForgotten,
    ReplayBegun,
    ReplayForgotten,
    ReplayStored,
    WindowReset,
    Woken,
)
from goqueue.machines.deliveries.look import settled_in, unsettled
from goqueue.machines.deliveries.place import Delivery
from goqueue.machines.deliveries.window import ATTEMPTS_MAX, WINDOW_MAX, Window
from goqueue.machines.machine import Fact
from goqueue.model.codes import Code

REPLAYS_MAX = 16
"""At once, per place."""
CHOSEN_MAX = 50_000
"""Ranges of one replay: all of them are one fact."""


def forgotten_replay(delivery: Delivery, window: Window) -> list[Fact]:
    place, number = delivery.place, window.number
    blocks = [BlockForgotten(place, number, block) for block in window.stored]
    return [*blocks, ReplayForgotten(place, number), ProgressForgotten(place, number)]


def forgotten(delivery: Delivery) -> Iterator[Fact]:
    """All about a place."""
    place = delivery.place
    for window in delivery.replays.values():
        yield from forgotten_replay(delivery, window)
    yield from (BlockForgotten(place, OWN_WINDOW, block) for block in delivery.own.stored)
    yield from (DeadForgotten(place, offset) for offset in delivery.dead)
    yield ProgressForgotten(place, OWN_WINDOW)


def shifted(places: Iterable[Delivery], by_ms: int, before_ms: int) -> Iterator[Fact]:
    """The clock was set, and said `before_ms` before: what was given back with a delay waits as long as it would
    have. What has waited long enough stays so, though its time is to come by the clock that was set back: whoever looks
    at it first after this, or after a restart, must not let it wait again.
    """

    def moved_ms(visible_at_ms: int) -> int:
        if visible_at_ms > before_ms:
            return visible_at_ms + by_ms
        return 0 if visible_at_ms > before_ms + by_ms else visible_at_ms

    for delivery in places:
        for window in delivery.windows():
            for number, block in window.stored.items():
                retries = list(unpack_retries(number, block.retries))
                moved = [retry._replace(visible_at_ms=moved_ms(retry.visible_at_ms)) for retry in retries]
                if moved != retries:
                    yield replace(block, retries=pack_retries(number, moved))
    yield ClockShifted(by_ms)


def lost_end(delivery: Delivery, end_offset: int | None) -> list[Fact]:
    """What is known from `end_offset` on is forgotten, and with it every replay that goes so far."""
    if end_offset is None:
        return []
    place, own, topic_id = delivery.place, delivery.own, delivery.topic_id
    assert topic_id is not None
    facts: list[Fact] = []
    for window in delivery.replays.values():
        if window.limit > end_offset:
            facts += forgotten_replay(delivery, window)
    for number, block in own.stored.items():
        if number * BLOCK >= end_offset:
            facts.append(BlockForgotten(place, OWN_WINDOW, number))
        elif (number + 1) * BLOCK > end_offset:
            settled = unpack_bits(block.settled) & bits_of(number, 0, end_offset - 1)
            retries = pack_retries(
                number, _clipped_retries(unpack_retries(number, block.retries), number * BLOCK, end_offset - 1)
            )
            kept = BlockStored(place, OWN_WINDOW, number, pack_bits(settled), retries)
            facts += [kept] if kept != block else []
    facts += (DeadForgotten(place, offset) for offset in delivery.dead if offset >= end_offset)
    if own.stored_start > end_offset:
        facts += [WindowReset(place, end_offset), Progress(place, OWN_WINDOW, topic_id, end_offset)]
    return facts


def decide_seek(delivery: Delivery, command: Seek) -> list[Fact]:
    """What died below the new start is still written to the dead letters: nobody else will ever see it."""
    place, topic_id = delivery.place, delivery.topic_id
    assert topic_id is not None
    facts: list[Fact] = [fact for window in delivery.replays.values() for fact in forgotten_replay(delivery, window)]
    facts += (BlockForgotten(place, OWN_WINDOW, block) for block in delivery.own.stored)
    facts += (DeadForgotten(place, offset) for offset in delivery.dead if offset >= command.offset)
    return [
        *facts,
        WindowReset(place, command.offset),
        Progress(place, OWN_WINDOW, topic_id, command.offset),
        Woken(place),
    ]


def decide_replay(delivery: Delivery, command: Replay) -> tuple[list[Fact], ReplayReply]:
    if len(delivery.replays) >= REPLAYS_MAX or len(command.chosen) > CHOSEN_MAX:
        return [], ReplayReply(Code.INVALID_REQUEST, OWN_WINDOW, 0)
    chosen = [each for each in merged(command.chosen) if each[0] <= each[1]]
    chosen = list(clipped(chosen, command.first_offset, command.next_offset - 1))
    settled = [each for wanted in chosen for each in settled_in(delivery.own, *wanted)]
    settled = without(settled, [(offset, offset) for offset in sorted(delivery.dead)])
    for window in delivery.replays.values():
        if settled:
            settled = without(settled, unsettled(window, settled[0][0], settled[-1][1]))
    if not settled:
        return [], ReplayReply(Code.NONE, OWN_WINDOW, 0)
    if len(settled) > CHOSEN_MAX:
        return [], ReplayReply(Code.INVALID_REQUEST, OWN_WINDOW, 0)
    number = delivery.next_window
    stored = ReplayStored(delivery.place, number, tuple(settled), max(0, command.records_per_second))
    records = sum(last + 1 - first for first, last in settled)
    return [stored, ReplayBegun(delivery.place, number), Woken(delivery.place)], ReplayReply(Code.NONE, number, records)


def state_of(delivery: Delivery) -> PlaceState:
    """As a restart would find it. What replays have still to deliver again is not settled."""
    own, topic_id = delivery.own, delivery.topic_id
    assert topic_id is not None
    blocks = sorted(own.stored.items())
    settled = merged(each for number, block in blocks for each in ranges_of(number, unpack_bits(block.settled)))
    retries = [each for number, block in blocks for each in unpack_retries(number, block.retries)]
    start = own.stored_start
    again = merged(each for window in delivery.replays.values() for each in unsettled(window, window.start, FOREVER))
    if again:
        start = min(start, again[0][0])
        below: list[Range] = [(start, own.stored_start - 1)] if start < own.stored_start else []
        settled = without(merged([*below, *settled]), again)
    return PlaceState(
        topic=delivery.place.topic,
        topic_id=topic_id,
        partition=delivery.place.partition,
        start_offset=start,
        settled=tuple(clipped(settled, start, start + 2 * WINDOW_MAX)),
        retries=tuple(_clipped_retries(retries, start, FOREVER)),
        dead=tuple(delivery.letters()),
    )


def restored(place: Place, state: PlaceState) -> Iterator[Fact]:
    """What must be stored so that a place is as `state` says. What it says beyond a window is not believed."""
    first, last = state.start_offset, state.start_offset + 2 * WINDOW_MAX
    bits: dict[int, int] = {}
    for low, high in clipped(state.settled, first, last):
        for number in blocks_of(low, high):
            bits[number] = bits.get(number, 0) | bits_of(number, low, high)
    retries: dict[int, list[Retry]] = {}
    for retry in _clipped_retries(state.retries, first, last):
        retries.setdefault(retry.first // BLOCK, []).append(retry)
    yield Progress(place, OWN_WINDOW, state.topic_id, first)
    for number in sorted({*bits, *retries}):
        settled = bits.get(number, 0)
        packed = pack_retries(number, retries.get(number, ()))
        for settled_range in ranges_of(number, settled):
            packed = without_retries(number, packed, *settled_range)
        yield BlockStored(place, OWN_WINDOW, number, pack_bits(settled), packed)
    for letter in state.dead:
        yield DeadStored(place, OWN_WINDOW, DeadLetter(*letter))


def _clipped_retries(retries: Iterable[tuple[int, int, int, int, int]], first: int, last: int) -> Iterator[Retry]:
    """Within first..last and each within one block."""
    for low, high, attempts, first_ms, visible_ms in retries:
        for part in clipped([(low, high)], first, last):
            yield from split_retry(Retry(*part, min(attempts, ATTEMPTS_MAX), first_ms, visible_ms))
