"""Settling by receipt: what a consumer without a session holds in its hand, back to the lease it stands for."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from goqueue.broker.queues.queues import Queues
from goqueue.machines.deliveries.commands import OLD_LEASE, How, Place, Settle, Settlement, SettleReply, Verdict
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.receipts import (
    LeaseReceipt,
    Receipt,
    decode_lease_receipt,
    decode_receipt,
    encode_lease_receipt,
    encode_receipt,
)
from goqueue.model.refusal import Refused

EPOCH_MAX = 2**32 - 1


class Wanted(NamedTuple):
    """What is to become of the record of one receipt."""

    receipt: str
    how: How = How.ACK
    delay_ms: int = -1
    """Of a retry: negative means the longer, the more often it was tried. Of an extension: from now."""
    reason: str = ""


class Settled(NamedTuple):
    """What became of the record of one receipt, and of its place."""

    verdict: Verdict
    place: Place
    offset: int
    attempts: int
    is_dead: bool
    """It will not be delivered again: settled, or a dead letter."""
    is_dying: bool
    """It becomes a dead letter."""
    visible_at_ms: int
    """When it can be delivered again."""
    settled_before: int
    settled_below: int
    """All below it is settled; before and after."""
    leased: int
    """How many records of the place consumers hold now."""


OnSettled: TypeAlias = Callable[[list[Verdict | GoQueueError]], None]
"""One answer per receipt; MalformedReceipt: it is none of ours."""


One: TypeAlias = tuple[int, Settlement]
"""The number of a receipt among those that came, and what it asks for."""


class Held(NamedTuple):
    """A record that a consumer holds, as it says."""

    place: Place
    offset: int
    consumer: str


OnReceipts = Callable[[list[str | GoQueueError]], None]


class SettlesElsewhere(Protocol):
    def receipts_held(self, wanted: Sequence[Held], on_receipts: OnReceipts) -> None: ...

    def settle(self, wanted: Sequence[Wanted], on_settled: OnSettled) -> None: ...

    def settle_one(self, wanted: Wanted, now_ms: int, on_settled: Callable[[Settled | GoQueueError], None]) -> None: ...

    def extend(self, receipt: str, hold_ms: int, on_done: Callable[[int | GoQueueError], None]) -> None: ...

    def finish(self, receipt: str, runs: Sequence[Any], on_done: Callable[[int | GoQueueError], None]) -> None: ...


class Settler:
    def __init__(self, queues: Queues, receipt_key: bytes) -> None:
        self._queues = queues
        self._key = receipt_key
        self.spread: SettlesElsewhere | None = None
        """In a cluster: has each receipt settled by the leader of its partition."""

    def _epoch(self, place: Place) -> int:
        """Of the leader, here: leases that another one gave, or this one before its last restart, are forgotten."""
        return self._queues.leader_epoch(place) & EPOCH_MAX

    def receipt(self, place: Place, offset: int, lease: int, epoch: int) -> str:
        """`epoch`: in which the lease was given, as it is told with it. There may be a later one by now."""
        return encode_receipt(Receipt(epoch & EPOCH_MAX, *place, offset, lease), self._key)

    def lease_receipt(self, place: Place, first: int, last: int, lease: int, epoch: int) -> str:
        """For all that was leased of a place at one time, between `first` and `last`."""
        return encode_lease_receipt(LeaseReceipt(epoch & EPOCH_MAX, *place, first, last, lease), self._key)

    def lease_of(self, receipt: str) -> LeaseReceipt:
        """Its lease is OLD_LEASE if it was given before the last restart. MalformedReceipt: it is none of ours."""
        found = decode_lease_receipt(receipt, self._key)
        is_current = found.epoch == self._epoch(Place(found.group_id, found.topic, found.partition))
        return found if is_current else found._replace(lease=OLD_LEASE)

    def receipts_held(self, wanted: Sequence[Held], on_receipts: OnReceipts) -> None:
        """The receipts of records, whoever leads their partitions; or why there is none."""
        if self.spread is None:
            on_receipts(self.receipts_held_here(wanted))
        else:
            self.spread.receipts_held(wanted, on_receipts)

    def receipts_held_here(self, wanted: Sequence[Held]) -> list[str | GoQueueError]:
        found: list[str | GoQueueError] = []
        for each in wanted:
            try:
                found.append(self.receipt_held(each.place, each.offset, each.consumer))
            except GoQueueError as error:
                found.append(error.kept())
        return found

    def receipt_held(self, place: Place, offset: int, consumer: str) -> str:
        """The receipt of a record that a consumer holds. Refused: it holds no such record."""
        lease = self._queues.peek_at(place).lease_of(place, offset, consumer)
        if lease is None:
            spot = f"{place.topic}/{place.partition}/{offset}"
            raise Refused(Code.INVALID_RECORD_STATE, f"{spot} is not leased to member {consumer!r}")
        return self.receipt(place, offset, lease, self._epoch(place))

    def settle_one(self, wanted: Wanted, now_ms: int, on_settled: Callable[[Settled | GoQueueError], None]) -> None:
        """As `settle`, and tells what came of it."""
        if self.spread is None:
            self.settle_one_here(wanted, now_ms, on_settled)
        else:
            self.spread.settle_one(wanted, now_ms, on_settled)

    def settle_one_here(
        self, wanted: Wanted, now_ms: int, on_settled: Callable[[Settled | GoQueueError], None]
    ) -> None:
        """As `settle_one`, in a partition that this node leads."""
        try:
            receipt = decode_receipt(wanted.receipt, self._key)
        except GoQueueError as error:
            on_settled(error)
            return
        place, offset = Place(receipt.group_id, receipt.topic, receipt.partition), receipt.offset
        try:
            machine = self._queues.peek_at(place)
        except GoQueueError as error:
            on_settled(error.kept())
            return
        before = self._queues.settled_below(place) or 0
        was = machine.look(place, offset)
        answers: list[Verdict | GoQueueError] = []
        seen: list[Settled] = []

        def settled(verdicts: list[Verdict | GoQueueError]) -> None:
            answers.extend(verdicts)
            if seen:
                answer()

        def answer() -> None:
            verdict = answers[0]
            on_settled(verdict if isinstance(verdict, GoQueueError) else seen[0]._replace(verdict=verdict))

        self.settle_here([wanted], settled)
        # Right now, and not when all is durable: somebody else may have got the record by then.
        look = machine.look(place, offset)
        measure = None if look is None else machine.measure(place)
        seen.append(
            Settled(
                verdict=Verdict.UNKNOWN,
                place=place,
                offset=offset,
                attempts=0 if was is None else was.attempts,
                is_dead=look is not None and look.is_dead,
                is_dying=look is not None and look.is_dying,
                visible_at_ms=max(now_ms, 0 if look is None else look.visible_at_ms),
                settled_before=before,
                settled_below=before if measure is None else measure.start_offset,
                leased=0 if measure is None else sum(measure.leased),
            )
        )
        if answers:
            answer()

    def place_of(self, receipt: str) -> Place:
        """Where its record is. MalformedReceipt: it is none of ours."""
        found = decode_receipt(receipt, self._key)
        return Place(found.group_id, found.topic, found.partition)

    def settle(self, wanted: Sequence[Wanted], on_settled: OnSettled) -> None:
        """Each by itself; the answers come together, when all that was done is durable."""
        if self.spread is None:
            self.settle_here(wanted, on_settled)
        else:
            self.spread.settle(wanted, on_settled)

    def settle_here(self, wanted: Sequence[Wanted], on_settled: OnSettled) -> None:
        """As `settle`, in partitions that this node leads."""
        answers: list[Verdict | GoQueueError] = [Verdict.UNKNOWN] * len(wanted)
        by_place: dict[Place, list[One]] = {}
        for number, want in enumerate(wanted):
            try:
                receipt = decode_receipt(want.receipt, self._key)
            except GoQueueError as error:
                answers[number] = error.kept()
                continue
            place = Place(receipt.group_id, receipt.topic, receipt.partition)
            lease = receipt.lease if receipt.epoch == self._epoch(place) else OLD_LEASE
            settlement = Settlement(receipt.offset, receipt.offset, want.how, want.delay_ms, want.reason, lease)
            by_place.setdefault(place, []).append((number, settlement))
        waiting = len(by_place)

        def place_settled() -> None:
            nonlocal waiting
            waiting -= 1
            if not waiting:
                on_settled(answers)

        if not by_place:
            on_settled(answers)
        for place, ones in by_place.items():
            self._settle_place(place, _joined(ones), answers, place_settled)

    def _settle_place(
        self, place: Place, runs: list[list[One]], answers: list[Verdict | GoQueueError], done: Callable[[], None]
    ) -> None:
        """Neighbours together: that costs as much as one. Where that fails, one by one, to tell them apart."""

        def settled(reply: SettleReply | GoQueueError) -> None:
            apart: list[list[One]] = []
            for place_in_reply, run in enumerate(runs):
                verdict = reply if isinstance(reply, GoQueueError) else reply.verdicts[place_in_reply]
                if len(run) > 1 and verdict is not Verdict.DONE and not isinstance(verdict, GoQueueError):
                    apart += [[one] for one in run]
                    continue
                for number, _ in run:
                    answers[number] = verdict
            if apart:
                self._settle_place(place, apart, answers, done)
            else:
                done()

        settlements = tuple(run[0][1]._replace(last=run[-1][1].last) for run in runs)
        self._queues.submit(Settle(place, settlements), settled)


def _joined(ones: list[One]) -> list[list[One]]:
    """In runs of offsets that follow each other and are to be settled alike."""
    runs: list[list[One]] = []
    for one in ones:
        before = runs[-1][-1][1] if runs else None
        if before is not None and before.last + 1 == one[1].first and before[2:] == one[1][2:]:
            runs[-1].append(one)
        else:
            runs.append([one])
    return runs
