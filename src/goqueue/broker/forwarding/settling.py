"""Receipts of records in partitions that other nodes lead: each is settled by its leader.

A settlement may be repeated, so one whose answer was lost is asked for once more; that it was settled before means then
that the first time has done it.
"""

from collections.abc import Sequence

import msgspec

from goqueue.broker.forwarding.calls import Call, OnDone, TellableError
from goqueue.broker.forwarding.forwarding import Forwarding
from goqueue.broker.forwarding.parts import Answered, Spot, ask_leader, check_leads, in_parts
from goqueue.broker.queues.queues import Queues
from goqueue.broker.queues.settle import Held, OnReceipts, OnSettled, Settled, Settler, Wanted
from goqueue.broker.queues.whole_leases import Run, extend_lease_here, finish_lease_here
from goqueue.machines.deliveries.commands import Place, Verdict
from goqueue.model.again import Again
from goqueue.model.errors import GoQueueError, Indeterminate
from goqueue.model.receipts import LeaseReceipt
from goqueue.ports.forwarding import Stop

Answer = Verdict | GoQueueError


class SettleWanted(msgspec.Struct, array_like=True):
    wanted: list[Wanted]


class Judged(msgspec.Struct, array_like=True):
    verdict: Verdict
    error: TellableError | None = None

    @classmethod
    def of(cls, answer: Answer) -> "Judged":
        is_error = isinstance(answer, GoQueueError)
        return cls(Verdict.UNKNOWN, TellableError.of(answer)) if is_error else cls(answer)  # type: ignore[arg-type]

    def answer(self) -> Answer:
        return self.verdict if self.error is None else self.error.error()


class OfLease(msgspec.Struct, array_like=True):
    """All that one receipt stands for is held longer, or is done."""

    receipt: str
    hold_ms: int | None = None
    """None: it is done."""
    runs: list[Run] = []


class ReceiptHeld(msgspec.Struct, array_like=True):
    receipt: str
    error: TellableError | None = None

    def answer(self) -> str | GoQueueError:
        return self.receipt if self.error is None else self.error.error()


HELD: Call[list[Held], list[ReceiptHeld]] = Call("receipts-held", list[Held], list[ReceiptHeld])
SETTLE: Call[SettleWanted, list[Judged]] = Call("settle", SettleWanted, list[Judged])
SETTLE_ONE: Call[Wanted, Settled] = Call("settle-one", Wanted, Settled)
SETTLE_LEASE: Call[OfLease, int] = Call("settle-lease", OfLease, int)


class SpreadSettler:
    """What `Settler.settle`, `settle_one` and leases as wholes do in a cluster."""

    def __init__(self, forwarding: Forwarding, settler: Settler, queues: Queues) -> None:
        self._forwarding = forwarding
        self._settler = settler
        self._queues = queues
        settler.spread = self
        HELD.serve(forwarding, self._serve_held)
        SETTLE.serve(forwarding, self._serve)
        SETTLE_ONE.serve(forwarding, self._serve_one)
        SETTLE_LEASE.serve(forwarding, self._serve_lease)

    # -- asking

    def receipts_held(self, wanted: Sequence[Held], on_receipts: OnReceipts) -> None:
        def here(part: list[int], answered: Answered[str | GoQueueError]) -> None:
            answered(self._settler.receipts_held_here([wanted[each] for each in part]))

        def there(node_id: int, part: list[int], answered: Answered[str | GoQueueError]) -> None:
            def told(reply: list[ReceiptHeld] | GoQueueError) -> None:
                answered(reply if isinstance(reply, GoQueueError) else [each.answer() for each in reply])

            HELD.ask(self._forwarding, node_id, [wanted[each] for each in part], told)

        spots = [(each.place.topic, each.place.partition) for each in wanted]
        in_parts(self._forwarding, spots, here, there, on_receipts)

    def settle(self, wanted: Sequence[Wanted], on_settled: OnSettled) -> None:
        answers: list[Answer] = [Verdict.UNKNOWN] * len(wanted)
        numbers, spots = self._placed(wanted, answers)
        asked_before: set[int] = set()

        def here(part: list[int], answered: Answered[Answer]) -> None:
            self._settler.settle_here([wanted[numbers[each]] for each in part], answered)

        def ask(again: Again, node_id: int, part: list[int], answered: Answered[Answer]) -> None:
            def told(reply: list[Judged] | GoQueueError) -> None:
                if isinstance(reply, Indeterminate) and not asked_before.issuperset(part):
                    asked_before.update(part)
                    again(node_id, part, answered)
                elif isinstance(reply, GoQueueError):
                    answered(reply)
                else:
                    judged = [each.answer() for each in reply]
                    answered([_again(each) if number in asked_before else each for number, each in zip(part, judged)])

            SETTLE.ask(self._forwarding, node_id, SettleWanted([wanted[numbers[each]] for each in part]), told)

        def all_settled(replies: list[Answer]) -> None:
            for number, reply in zip(numbers, replies):
                answers[number] = reply
            on_settled(answers)

        in_parts(self._forwarding, spots, here, Again(ask), all_settled)

    def _placed(self, wanted: Sequence[Wanted], answers: list[Answer]) -> tuple[list[int], list[Spot]]:
        numbers, spots = [], []
        for number, want in enumerate(wanted):
            try:
                place = self._settler.place_of(want.receipt)
            except GoQueueError as error:
                answers[number] = error.kept()
            else:
                numbers.append(number)
                spots.append((place.topic, place.partition))
        return numbers, spots

    def settle_one(self, wanted: Wanted, now_ms: int, on_settled: OnDone[Settled]) -> None:
        try:
            place = self._settler.place_of(wanted.receipt)
        except GoQueueError as error:
            on_settled(error.kept())
            return

        def here(on_reply: OnDone[Settled]) -> None:
            self._settler.settle_one_here(wanted, now_ms, on_reply)

        ask_leader(self._forwarding, (place.topic, place.partition), SETTLE_ONE, wanted, here, on_settled)

    def extend(self, receipt: str, hold_ms: int, on_done: OnDone[int]) -> None:
        self._of_lease(OfLease(receipt, hold_ms), on_done)

    def finish(self, receipt: str, runs: Sequence[Run], on_done: OnDone[int]) -> None:
        self._of_lease(OfLease(receipt, None, list(runs)), on_done)

    def _of_lease(self, wanted: OfLease, on_done: OnDone[int]) -> None:
        place = self._settler.lease_of(wanted.receipt)
        ask_leader(
            self._forwarding,
            (place.topic, place.partition),
            SETTLE_LEASE,
            wanted,
            lambda done: self._lease_here(wanted, done),
            on_done,
        )

    # -- being asked

    def _check_leads(self, place: Place | LeaseReceipt) -> None:
        check_leads(self._forwarding, place.topic, place.partition)

    def _serve_held(self, held: list[Held], _timeout_ms: int, on_reply: OnDone[list[ReceiptHeld]]) -> Stop | None:
        for each in held:
            self._check_leads(each.place)
        found = self._settler.receipts_held_here(held)
        on_reply(
            [
                ReceiptHeld("", TellableError.of(each)) if isinstance(each, GoQueueError) else ReceiptHeld(each)
                for each in found
            ]
        )
        return None

    def _serve(self, wanted: SettleWanted, _timeout_ms: int, on_reply: OnDone[list[Judged]]) -> Stop | None:
        for each in wanted.wanted:
            self._check_leads(self._settler.place_of(each.receipt))
        self._settler.settle_here(wanted.wanted, lambda answers: on_reply([Judged.of(answer) for answer in answers]))
        return None

    def _serve_one(self, wanted: Wanted, _timeout_ms: int, on_reply: OnDone[Settled]) -> Stop | None:
        self._check_leads(self._settler.place_of(wanted.receipt))
        self._settler.settle_one_here(wanted, self._forwarding.clock.now_ms(), on_reply)
        return None

    def _serve_lease(self, wanted: OfLease, _timeout_ms: int, on_reply: OnDone[int]) -> Stop | None:
        self._check_leads(self._settler.lease_of(wanted.receipt))
        self._lease_here(wanted, on_reply)
        return None

    def _lease_here(self, wanted: OfLease, on_done: OnDone[int]) -> None:
        if wanted.hold_ms is None:
            finish_lease_here(self._queues, self._settler, wanted.receipt, wanted.runs, on_done)
        else:
            extend_lease_here(self._queues, self._settler, wanted.receipt, wanted.hold_ms, on_done)


def _again(answer: Answer) -> Answer:
    return Verdict.DONE if answer is Verdict.REPEATED else answer
