"""Deliveries as one would write them if nothing had to be fast: one object per record, looked at one by one."""

import msgspec

from goqueue.machines.deliveries.commands import (
    NEVER,
    NO_KEY,
    NO_LEASE,
    OLD_LEASE,
    How,
    LeasedRun,
    Policy,
    Settlement,
    Span,
    Verdict,
)
from goqueue.machines.deliveries.settle import backoff_ms


class Known(msgspec.Struct):
    """A record and what became of it."""

    span: Span
    state: str = "open"
    """open, dead, settled"""
    window: int = 0
    lease: int = 0
    """That holds it now."""
    last_lease: int = 0
    """Of this boot."""
    consumer: str = ""
    deadline_ms: int = 0
    attempts: int = 0
    ended: int = 0
    """Attempts that a restart remembers."""
    first_ms: int | None = None
    visible_at_ms: int = 0
    reason: str = ""

    @property
    def offset(self) -> int:
        return self.span.first

    def reopen(self, window: int) -> None:
        self.state, self.window, self.attempts, self.ended, self.first_ms = "open", window, 0, 0, None
        self.lease = self.last_lease = self.visible_at_ms = 0

    def forget_leases(self) -> None:
        self.lease = self.last_lease = 0
        self.attempts = self.ended
        if not self.ended:
            self.first_ms = None


class Model:
    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.log: list[Known] = []
        self.now_ms = 0
        self.ends: dict[int, int] = {0: 0}
        """How far each window was observed."""
        self.bases: dict[int, int] = {0: 0}
        """Where each window begins to know gaps from what was settled."""
        self.new_windows: set[int] = {0}
        """Of which nothing was leased before the last restart."""
        self.forgot_below: dict[int, int] = {}
        """By window: leases below that were forgotten without a restart."""

    # Who may have what

    def is_seen(self, known: Known) -> bool:
        return known.offset < self.ends.get(known.window, 0)

    def is_expired(self, known: Known, at_ms: int) -> bool:
        """What is replayed does not expire."""
        return known.window == 0 and known.span.expires_at_ms != NEVER and known.span.expires_at_ms <= at_ms

    def ready(self) -> dict[int, Known]:
        """Neither leased nor delayed nor behind another one of its key."""
        heads: dict[tuple[int, int], int] = {}
        if self.policy.orders_by_key:
            for known in self.log:
                if known.state == "open" and known.span.key_hash != NO_KEY:
                    heads.setdefault((known.window, known.span.key_hash), known.offset)
        return {
            known.offset: known
            for known in self.log
            if known.state == "open" and not known.lease and known.visible_at_ms <= self.now_ms
            if self.is_seen(known)
            if heads.get((known.window, known.span.key_hash), known.offset) == known.offset
        }

    def deliverable(self) -> dict[int, Known]:
        """Also not expired, and nothing of the same key is leased in another window."""
        busy: dict[int, set[int]] = {}
        if self.policy.orders_by_key:
            for known in self.log:
                if known.lease and known.span.key_hash != NO_KEY:
                    busy.setdefault(known.span.key_hash, set()).add(known.window)
        return {
            offset: known
            for offset, known in self.ready().items()
            if not self.is_expired(known, self.now_ms) and not busy.get(known.span.key_hash, set()) - {known.window}
        }

    def room(self, consumer: str) -> int:
        return self.policy.unacked_max - sum(known.lease > 0 and known.consumer == consumer for known in self.log)

    # What happens

    def leased(self, runs: tuple[LeasedRun, ...], number: int, consumer: str, deadline_ms: int) -> None:
        deliverable = self.deliverable()
        for run in runs:
            for offset in range(run.first, run.last + 1):
                known = deliverable[offset]
                assert run.attempt == known.attempts + 1
                known.first_ms = self.now_ms if known.first_ms is None else known.first_ms
                assert run.first_delivered_ms == known.first_ms
                known.lease = known.last_lease = number
                known.consumer, known.deadline_ms, known.attempts = consumer, deadline_ms, known.attempts + 1

    def expire(self, known: Known) -> None:
        known.state, known.reason = ("dead", "expired") if self.policy.keeps_expired else ("settled", "")
        known.lease = 0

    def end_delivery(self, known: Known, visible_at_ms: int, at_ms: int) -> None:
        known.lease = 0
        known.ended = known.attempts
        if self.is_seen(known) and self.is_expired(known, at_ms):
            self.expire(known)
        elif known.attempts >= self.policy.attempts_max:
            known.state, known.reason = "dead", "attempts"
        else:
            known.visible_at_ms = visible_at_ms

    def pass_time(self, now_ms: int) -> None:
        self.now_ms = now_ms
        for known in self.log:
            if known.state == "open" and known.lease and known.deadline_ms <= now_ms:
                self.end_delivery(known, 0, known.deadline_ms)
            if known.state == "open" and not known.lease and self.is_seen(known) and self.is_expired(known, now_ms):
                self.expire(known)

    # Settling

    def is_old(self, window: int, lease: int) -> bool:
        return lease in (OLD_LEASE, NO_LEASE) or lease < self.forgot_below.get(window, 0)

    def judge(self, settlement: Settlement, consumer: str | None) -> Verdict:
        found: list[Known] = []
        for offset in range(settlement.first, settlement.last + 1):
            known = self.log[offset]
            window = known.window if known.state == "open" else 0
            if not known.span.is_visible and self.bases[0] <= offset < self.ends[0]:
                continue
            verdict = self._judge_one(known, window, settlement.lease, consumer)
            if verdict is not Verdict.DONE:
                return verdict
            found.append(known)
        if settlement.how is How.EXTEND and not all(known.lease for known in found):
            return Verdict.EXPIRED
        return Verdict.DONE if found or consumer is not None else Verdict.UNKNOWN

    def _judge_one(self, known: Known, window: int, lease: int, consumer: str | None) -> Verdict:
        is_old = consumer is None and self.is_old(window, lease)
        if known.state != "open":
            is_unseen_gap = not known.span.is_visible and known.offset >= self.ends[window]
            return Verdict.UNKNOWN if is_unseen_gap and not is_old else Verdict.REPEATED
        if lease == NO_LEASE:
            return Verdict.EXPIRED if known.lease else Verdict.DONE
        if is_old:
            is_lost = known.last_lease or (lease == OLD_LEASE and window in self.new_windows)
            return Verdict.EXPIRED if is_lost else Verdict.DONE
        if not self.is_seen(known):
            return Verdict.UNKNOWN
        if consumer is not None:
            return Verdict.DONE if known.lease and known.consumer == consumer else Verdict.EXPIRED
        return Verdict.DONE if known.last_lease == lease else Verdict.EXPIRED

    def settle(self, settlement: Settlement, consumer: str | None) -> None:
        """It was found to be in order."""
        for offset in range(settlement.first, settlement.last + 1):
            known = self.log[offset]
            is_old = consumer is None and self.is_old(known.window, settlement.lease)
            if not known.span.is_visible:
                continue
            match settlement.how:
                case How.ACK:
                    known.state, known.lease = "settled", 0
                case How.REJECT:
                    known.attempts += is_old
                    known.state, known.lease, known.reason = "dead", 0, "rejected"
                case How.EXTEND:
                    known.deadline_ms = self.now_ms + settlement.delay_ms
                case How.UNDO if known.lease:
                    known.lease = known.last_lease = 0
                    known.attempts -= 1
                    if not known.ended:
                        known.first_ms = None
                case How.RETRY:
                    self._retry(known, settlement, is_old)

    def _retry(self, known: Known, settlement: Settlement, is_old: bool) -> None:
        if is_old:
            known.attempts += 1
            known.first_ms = self.now_ms if known.first_ms is None else known.first_ms
        delay_ms = settlement.delay_ms
        delay_ms = backoff_ms(self.policy, known.attempts) if delay_ms < 0 else delay_ms
        self.end_delivery(known, self.now_ms + delay_ms if delay_ms else 0, self.now_ms)

    # The rest

    def restarted(self) -> None:
        for known in self.log:
            known.forget_leases()
        self.new_windows.clear()
        self.forgot_below.clear()

    def reordered(self, policy: Policy, next_lease: int) -> None:
        self.policy = policy
        for known in self.log:
            known.forget_leases()
        self.forgot_below = dict.fromkeys(self.ends, next_lease)

    def seek(self, offset: int) -> None:
        for known in self.log:
            if known.offset >= offset and known.span.is_visible:
                known.reopen(0)
            elif known.state == "open":
                known.state, known.lease = "settled", 0
            if known.offset < offset and known.state == "dead":
                known.window = 0
        self.new_windows.add(0)
        self.forgot_below.clear()
