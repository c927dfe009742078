"""Settling: whether who says what becomes of records may say so, and what then becomes of them.

Late is not wrong: whoever was given a record last may settle it after the lease ended, as long as nobody else got it.
"""

from bisect import bisect_right, insort
from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from goqueue.machines.deliveries.blocks import BLOCK, FOREVER, Range, unpack_bits, without
from goqueue.machines.deliveries.commands import (
    ANY_LEASE,
    BACKOFF,
    NO_LEASE,
    OLD_LEASE,
    How,
    Policy,
    Settle,
    Settlement,
    SettleReply,
    Verdict,
)
from goqueue.machines.deliveries.draft import ERROR_CHARS_MAX, Draft
from goqueue.machines.deliveries.facts import ACKED, NACKED, REJECTED, Causes, Extended
from goqueue.machines.deliveries.leases import Leases
from goqueue.machines.deliveries.look import expired_in
from goqueue.machines.deliveries.pick import History, histories
from goqueue.machines.deliveries.place import Delivery
from goqueue.machines.deliveries.window import (
    ATTEMPTS_MAX,
    DEAD,
    GAP,
    LEASED,
    WAITING,
    WINDOW_MAX,
    Window,
)
from goqueue.machines.machine import Fact

OLD_RANGE_MAX = 10_000
BACKOFF_DOUBLINGS_MAX = 32

LATE = "late"
"""About an ack: it came after the end of its lease, or after a restart."""
_LATE, _OLD = 0, -1
_COUNTED_AS = {How.ACK: "acked", How.RETRY: "nacked", How.REJECT: "rejected"}


class Claim(NamedTuple):
    """Neighbours that may be settled as was asked."""

    window: Window
    first: int
    last: int
    lease: int
    """The one that holds all of them now, or _LATE, or _OLD."""


def backoff_ms(policy: Policy, attempts: int) -> int:
    """Twice as long after every attempt."""
    doublings = min(max(attempts, 1) - 1, BACKOFF_DOUBLINGS_MAX)
    return min(policy.backoff_ms << doublings, policy.backoff_ms_max)


def end_delivery(draft: Draft, history: History, delay_ms: int, error: str, lease: int, causes: Causes) -> None:
    """A delivery ended and its records were not settled: they are delivered again, unless that is of no use."""
    history = history._replace(attempts=min(history.attempts, ATTEMPTS_MAX))  # there it stays, without a limit
    first, last, attempts, _ = history
    window = draft.window
    expired = [(offset, offset) for offset in expired_in(window, first, last, draft.now_ms)]
    for low, high in expired:
        draft.expire(history._replace(first=low, last=high), lease, causes)
    for low, high in without([(first, last)], expired) if expired else [(first, last)]:
        part = history._replace(first=low, last=high)
        if attempts >= draft.delivery.attempts_max:
            draft.kill(part, "attempts", error, lease, causes)
        else:
            delay = backoff_ms(draft.delivery.policy, attempts) if delay_ms == BACKOFF else delay_ms
            draft.retry(part, draft.now_ms + delay, lease, causes, error[:ERROR_CHARS_MAX])


class Settling:
    """One command: each settlement by itself, none of them twice."""

    __slots__ = ("_consumer", "_delivery", "_drafts", "_extended", "_leases", "_now_ms", "_settlements", "_taken")

    def __init__(self, delivery: Delivery, leases: Leases, command: Settle, now_ms: int) -> None:
        self._delivery = delivery
        self._leases = leases
        self._consumer = command.consumer
        self._settlements = command.settlements
        self._now_ms = now_ms
        self._drafts: dict[int, Draft] = {}
        self._extended: dict[int, list[tuple[int, int, int]]] = {}
        self._taken: list[Range] = []

    def decide(self) -> tuple[list[Fact], SettleReply]:
        settlements = self._settlements
        if len(settlements) == 1:
            verdicts = [self._settle(settlements[0])]
        else:
            verdicts = []
            while len(verdicts) < len(settlements):
                verdicts += self._settle_row(len(verdicts))
        facts: list[Fact] = []
        for draft in self._drafts.values():
            facts += draft.facts()
        if self._extended:
            facts += (Extended(tuple(parts), deadline_ms) for deadline_ms, parts in self._extended.items())
        return facts, SettleReply(tuple(verdicts))

    def _settle_row(self, begin: int) -> list[Verdict]:
        """Receipts come one by one and mostly in a row: that is one settlement, if nothing speaks against it."""
        settlements = self._settlements
        first, last, *_ = settlements[begin]
        tail = settlements[begin][2:]
        end = begin + 1
        for following in settlements[end:]:
            if following[0] != last + 1 or following[1] <= last or following[2:] != tail:
                break
            last = following[1]
            end += 1
        verdict = self._settle(Settlement(first, last, *tail))
        if end == begin + 1 or verdict is Verdict.DONE:
            return [verdict] * (end - begin)
        return [self._settle(each) for each in settlements[begin:end]]

    def _settle(self, settlement: Settlement) -> Verdict:
        first, last = settlement.first, settlement.last
        if first > last or (self._taken and self._overlaps(first, last)):
            return Verdict.UNKNOWN if first > last else Verdict.REPEATED
        claim = self._whole_claim(settlement)
        if claim is not None:
            self._act(claim, settlement)
        else:
            claims = self._claims(settlement)
            if isinstance(claims, Verdict):
                return claims
            if settlement.how is How.EXTEND and any(each.lease <= 0 for each in claims):
                return Verdict.EXPIRED
            for each in claims:
                self._act(each, settlement)
        if len(self._settlements) > 1:
            insort(self._taken, (first, last))
        return Verdict.DONE

    def _overlaps(self, first: int, last: int) -> bool:
        position = bisect_right(self._taken, (last, FOREVER)) - 1
        return position >= 0 and self._taken[position][1] >= first

    # May they?

    def _whole_claim(self, settlement: Settlement) -> Claim | None:
        """The common case: all of it is held by one lease."""
        first, last, lease = settlement.first, settlement.last, settlement.lease
        own = self._delivery.own
        if self._delivery.replays:
            return None
        if self._consumer is not None:
            if not own.base <= first < own.end:
                return None
            lease = own.lease_of[first - own.base]
            held = self._leases.get(lease)
            if held is None or held.consumer != self._consumer:
                return None
        if lease > 0 and own.all_leased(first, last, lease):
            return Claim(own, first, last, lease)
        return None

    def _claims(self, settlement: Settlement) -> list[Claim] | Verdict:
        lease = settlement.lease
        is_named = self._consumer is not None
        is_without = not is_named and lease in (OLD_LEASE, NO_LEASE)
        if not is_named and not is_without and not 0 < lease < self._leases.next_number:
            return Verdict.UNKNOWN
        if is_without and settlement.last - settlement.first >= OLD_RANGE_MAX:
            return Verdict.UNKNOWN
        found: list[Claim] = []
        for window, first, last in self._delivery.parts(settlement.first, settlement.last):
            is_old = is_without or (not is_named and lease < window.forgot_below)
            offset = first
            while offset <= last:
                if window.base <= offset < window.end and window.kind_at(offset) == GAP:
                    offset = window.gap_until(offset)
                    continue
                seen = self._old(window, offset, lease) if is_old else self._seen(window, offset, lease)
                if isinstance(seen, Verdict):
                    return seen
                if found and found[-1][0::3] == (window, seen) and found[-1].last == offset - 1:
                    found[-1] = found[-1]._replace(last=offset)
                else:
                    found.append(Claim(window, offset, offset, seen))
                offset += 1
        return found if found or is_named else Verdict.UNKNOWN

    def _seen(self, window: Window, offset: int, lease: int) -> int | Verdict:
        """The lease that holds a record, or _LATE; or why it may not be settled."""
        if offset >= window.end:
            # A replay that is over may have delivered it while the log is being observed again.
            return Verdict.REPEATED if self._is_done_unseen(window, offset) else Verdict.UNKNOWN
        kind = window.kind_at(offset)
        if kind >= DEAD:
            return Verdict.REPEATED
        number = window.lease_of[offset - window.base]
        is_held = LEASED <= kind < WAITING
        if self._consumer is not None:
            held = self._leases.get(number) if is_held else None
            return number if held is not None and held.consumer == self._consumer else Verdict.EXPIRED
        if number != lease or lease == ANY_LEASE:
            return Verdict.EXPIRED
        return number if is_held else _LATE

    def _old(self, window: Window, offset: int, lease: int) -> int | Verdict:
        """Was it leased before leases were forgotten, and not since? NO_LEASE: is it held by nobody now?"""
        if offset < window.start or offset in self._delivery.dead:
            return Verdict.REPEATED
        if offset < window.end:
            kind = window.kind_at(offset)
            is_done = kind >= DEAD
            is_given = LEASED <= kind < WAITING if lease == NO_LEASE else window.lease_of[offset - window.base] > 0
        elif offset < min(window.limit, window.start + WINDOW_MAX):
            is_done = self._is_done_unseen(window, offset)
            is_given = False
        else:
            return Verdict.UNKNOWN
        if is_done:
            return Verdict.REPEATED
        return Verdict.EXPIRED if is_given or (lease == OLD_LEASE and not window.takes_old) else _OLD

    def _is_done_unseen(self, window: Window, offset: int) -> bool:
        """As the ledger knows it, of what was not observed yet."""
        block = window.stored.get(offset // BLOCK)
        is_settled = block is not None and unpack_bits(block.settled) >> offset % BLOCK & 1 == 1
        return is_settled or offset in self._delivery.dead

    # What becomes of them

    def _act(self, claim: Claim, settlement: Settlement) -> None:
        window, first, last, lease = claim
        draft = self._drafts.get(window.number)
        if draft is None:
            draft = self._drafts[window.number] = Draft(self._delivery, window, self._now_ms)
        held = max(lease, 0)
        how = settlement.how
        if how in _COUNTED_AS:
            draft.count(_COUNTED_AS[how], first, last)
        if how is How.ACK:
            is_cleared = settlement.lease == NO_LEASE  # by whoever looks after the group
            draft.settle(first, last, held, () if is_cleared else ACKED, "" if held else LATE)
        elif how is How.EXTEND:
            delay_ms = self._delivery.policy.lease_ms if settlement.delay_ms == BACKOFF else settlement.delay_ms
            self._extended.setdefault(self._now_ms + delay_ms, []).append((lease, first, last))
        elif how is How.UNDO:
            if held:
                draft.undo(first, last, held)
        else:
            for history in self._histories(claim):
                if how is How.REJECT:
                    draft.kill(history, "rejected", settlement.reason, held, REJECTED)
                else:
                    end_delivery(draft, history, settlement.delay_ms, settlement.reason, held, NACKED)

    def _histories(self, claim: Claim) -> Iterator[History]:
        window, first, last, lease = claim
        if lease == _OLD:
            yield from self._old_histories(window, first, last)
            return
        held = self._leases.get(lease)
        yield from histories(window, first, last, self._now_ms if held is None else held.leased_ms)

    def _old_histories(self, window: Window, first: int, last: int) -> Iterator[History]:
        """The delivery that ends now was counted before the restart, which forgot it."""
        known = {
            offset: (retry.attempts + 1, retry.first_delivered_ms)
            for retry in window.retries(first, last)
            for offset in range(retry.first, retry.last + 1)
        }
        fresh = (1, self._now_ms)
        for about, offsets in groupby(range(first, last + 1), lambda offset: known.get(offset, fresh)):
            members = list(offsets)
            yield History(members[0], members[-1], *about)
