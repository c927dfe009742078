"""AckService: done, once more later, never again, or not yet."""

from functools import partial
from typing import NoReturn

from goqueue.broker.queues.settle import Held, Settled, Wanted
from goqueue.doors.grpc.call import Call, named
from goqueue.doors.grpc.convert import duration_ms_of, timestamp_of
from goqueue.doors.grpc.errors import NOT_FOUND, PRECONDITION, GrpcError, error_of
from goqueue.machines.deliveries.commands import How, Place, Verdict
from goqueue.model.errors import GoQueueError
from goqueue.wire.grpc import ack_pb2 as pb
from goqueue.wire.grpc import common_pb2

BACKOFF = -1
DELAY_MS_MAX = 365 * 86_400_000
HOLD_MS_MAX = 12 * 3_600_000
BATCH_MAX = 10_000
REASON_CHARS_MAX = 1000

REFUSALS = {
    Verdict.UNKNOWN: ("no such message was ever leased", NOT_FOUND, common_pb2.ERROR_CODE_MESSAGE_NOT_FOUND),
    Verdict.REPEATED: ("the message was settled before", PRECONDITION, common_pb2.ERROR_CODE_ALREADY_SETTLED),
    Verdict.EXPIRED: (
        "the lease is over, and the message was or will be delivered again",
        PRECONDITION,
        common_pb2.ERROR_CODE_RECEIPT_HANDLE_EXPIRED,
    ),
}


class AckService:
    def __init__(self, call: Call) -> None:
        self._call = call

    async def ack(self, request: pb.AckRequest) -> pb.AckResponse:
        await self._settle(Wanted(await self._receipt(request)))
        return pb.AckResponse(success=True)

    async def nack(self, request: pb.NackRequest) -> pb.NackResponse:
        delay_ms = BACKOFF
        if request.HasField("visibility_timeout"):
            delay_ms = duration_ms_of("visibility_timeout", request.visibility_timeout, 0, DELAY_MS_MAX)
        settled = await self._settle(Wanted(await self._receipt(request), How.RETRY, delay_ms, _reason(request.reason)))
        answer = pb.NackResponse(success=True)
        if settled.is_dying:
            answer.dlq_topic = self._call.broker.dead_letters.name_of(settled.place.topic)
        if not settled.is_dead:
            answer.next_visible_at.CopyFrom(timestamp_of(settled.visible_at_ms))
        return answer

    async def reject(self, request: pb.RejectRequest) -> pb.RejectResponse:
        settled = await self._settle(Wanted(await self._receipt(request), How.REJECT, reason=_reason(request.reason)))
        return pb.RejectResponse(success=True, dlq_topic=self._call.broker.dead_letters.name_of(settled.place.topic))

    async def extend_visibility(self, request: pb.ExtendVisibilityRequest) -> pb.ExtendVisibilityResponse:
        if not request.HasField("visibility_timeout"):
            raise GrpcError("visibility_timeout is missing")
        hold_ms = duration_ms_of("visibility_timeout", request.visibility_timeout, 1, HOLD_MS_MAX)
        receipt = self._of_group(named("receipt_handle", request.receipt_handle), request.group_id)
        deadline_ms = self._call.now_ms + hold_ms
        await self._settle(Wanted(receipt, How.EXTEND, hold_ms))
        return pb.ExtendVisibilityResponse(success=True, new_deadline=timestamp_of(deadline_ms))

    async def batch_ack(self, request: pb.BatchAckRequest) -> pb.BatchAckResponse:
        count = len(request.receipt_handles) + len(request.offsets)
        if not 0 < count <= BATCH_MAX:
            raise GrpcError(f"acknowledge 1 to {BATCH_MAX} messages, not {count}")
        entries = [pb.AckError(receipt_handle=each) for each in request.receipt_handles]
        entries += [
            pb.AckError(topic=each.topic, partition=each.partition, offset=each.offset) for each in request.offsets
        ]
        outcomes: list[Verdict | GoQueueError] = [Verdict.UNKNOWN] * count
        receipts: dict[int, str | GoQueueError] = {}
        held: dict[int, Held] = {}
        for number, entry in enumerate(entries):
            try:
                if entry.receipt_handle:
                    receipts[number] = self._of_group(entry.receipt_handle, request.group_id)
                else:
                    held[number] = self._held(request.group_id, request.member_id, entry)
            except GoQueueError as error:
                outcomes[number] = error.kept()
        receipts |= zip(held, await self._receipts(list(held.values())))
        wanted: list[tuple[int, Wanted]] = []
        for number, receipt in sorted(receipts.items()):
            if isinstance(receipt, GoQueueError):
                outcomes[number] = receipt
            else:
                wanted.append((number, Wanted(receipt)))
        answers = await self._call.ask(partial(self._call.broker.settler.settle, [each for _, each in wanted]))
        for (number, _), answer in zip(wanted, answers):
            outcomes[number] = answer
        failures = []
        for entry, outcome in zip(entries, outcomes):
            if outcome is not Verdict.DONE:
                entry.error.CopyFrom(error_of(outcome if isinstance(outcome, GoQueueError) else _refusal(outcome)))
                failures.append(entry)
        return pb.BatchAckResponse(success_count=count - len(failures), failures=failures)

    # -- which message

    async def _receipt(self, request: pb.AckRequest | pb.NackRequest | pb.RejectRequest) -> str:
        if request.receipt_handle:
            return self._of_group(request.receipt_handle, request.group_id)
        (receipt,) = await self._receipts([self._held(request.group_id, request.member_id, request)])
        if isinstance(receipt, GoQueueError):
            try:
                raise receipt.kept()
            finally:
                del receipt  # the error holds this frame
        return receipt

    async def _receipts(self, held: list[Held]) -> list[str | GoQueueError]:
        found: list[str | GoQueueError] = await self._call.ask(
            lambda done: self._call.broker.settler.receipts_held(held, done)
        )
        return found

    def _of_group(self, receipt: str, group_id: str) -> str:
        if group_id and self._call.broker.settler.place_of(receipt).group_id != group_id:
            words = f"the receipt is not of group {group_id!r}"
            raise GrpcError(words, code=common_pb2.ERROR_CODE_RECEIPT_HANDLE_INVALID)
        return receipt

    def _held(
        self, group_id: str, member_id: str, at: pb.AckRequest | pb.NackRequest | pb.RejectRequest | pb.AckError
    ) -> Held:
        if not at.topic:
            raise GrpcError("say a receipt_handle, or topic, partition and offset with the member_id that holds it")
        place = Place(named("group_id", group_id), at.topic, self._call.partition(at.topic, at.partition))
        return Held(place, at.offset, named("member_id", member_id))

    async def _settle(self, wanted: Wanted) -> Settled:
        call = self._call
        settled: Settled = await call.ask(lambda done: call.broker.settler.settle_one(wanted, call.now_ms, done))
        if settled.verdict is not Verdict.DONE:
            _refuse(settled.verdict)
        return settled


def _refusal(verdict: Verdict) -> GrpcError:
    return GrpcError(*REFUSALS[verdict])


def _refuse(verdict: Verdict) -> NoReturn:
    raise _refusal(verdict)


def _reason(given: str) -> str:
    if len(given) > REASON_CHARS_MAX:
        raise GrpcError(f"a reason has at most {REASON_CHARS_MAX} characters")
    return given
