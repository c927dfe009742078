"""Settling messages: done, once more later, never again, or not yet."""

from collections.abc import Sequence
from typing import NoReturn

from goqueue.broker.queues.settle import Settled, Wanted
from goqueue.doors.http.call import Call
from goqueue.doors.http.errors import BAD_REQUEST, CONFLICT, GONE, NOT_FOUND, HttpError, status_and_code
from goqueue.doors.http.operation import Handlers
from goqueue.doors.http.permissions import DESCRIBES_CLUSTER, RESETS, SETTLES
from goqueue.machines.deliveries.commands import ANY_LEASE, NO_LEASE, How, Place, Settle, SettleReply, Verdict
from goqueue.machines.deliveries.commands import Settlement as PlaceSettlement
from goqueue.model.errors import GoQueueError, InvalidMoment
from goqueue.model.ledgers import LedgerKind
from goqueue.model.moments import format_moment, parse_duration_ms
from goqueue.wire.rest.acks import (
    HOLD_S_MAX,
    Ack,
    Acked,
    AckStats,
    DeadLetterStats,
    Extended,
    Nack,
    Nacked,
    Reject,
    Rejected,
    ReliabilityStats,
    SettleAll,
    SettledAll,
    SettledPlace,
    Settlement,
    SettlePlace,
    SettleResult,
    Visibility,
    VisibilityStats,
)
from goqueue.wire.rest.common import Duration
from goqueue.wire.rest.groups import GroupPath
from goqueue.wire.rest.operations import acks as operations

BACKOFF = -1
DELAY_MS_MAX = 365 * 86_400_000
HOLD_MS_MAX = HOLD_S_MAX * 1000
OK = 200
REFUSALS: dict[Verdict, tuple[int, str, str]] = {
    Verdict.UNKNOWN: (NOT_FOUND, "UNKNOWN_RECEIPT", "no message was ever leased with this receipt"),
    Verdict.REPEATED: (CONFLICT, "ALREADY_SETTLED", "the message was settled before"),
    Verdict.EXPIRED: (GONE, "LEASE_EXPIRED", "the lease is over, and the message was or will be delivered again"),
}
HOWS = {"ack": How.ACK, "nack": How.RETRY, "reject": How.REJECT, "extend": How.EXTEND}

acks = Handlers(rests_on=(LedgerKind.DELIVERIES, LedgerKind.GROUPS))


async def _settle(call: Call, wanted: Wanted) -> Settled:
    settled: Settled = await call.ask(lambda done: call.broker.settler.settle_one(wanted, call.now_ms, done))
    if settled.verdict is not Verdict.DONE:
        _refuse(settled.verdict)
    return settled


def _refuse(verdict: Verdict) -> NoReturn:
    raise HttpError(*REFUSALS[verdict])


def _delay_ms(given: Duration | None) -> int:
    if given is None:
        return BACKOFF
    delay_ms = parse_duration_ms(given)
    if delay_ms > DELAY_MS_MAX:
        raise InvalidMoment(f"the delay is {delay_ms} ms, but may be {DELAY_MS_MAX} ms at most")
    return delay_ms


def _hold_ms(timeout: Duration | None, seconds: int | None = None) -> int:
    if (timeout is None) == (seconds is None):
        raise HttpError(BAD_REQUEST, "INVALID_REQUEST", "say either timeout or extension_seconds")
    hold_ms = parse_duration_ms(timeout) if timeout is not None else (seconds or 0) * 1000
    if not 1 <= hold_ms <= HOLD_MS_MAX:
        raise InvalidMoment(f"the timeout is {hold_ms} ms, but must be from 1 to {HOLD_MS_MAX} ms")
    return hold_ms


@acks.handles(operations.ACK, SETTLES)
async def ack(call: Call, body: Ack) -> Acked:
    settled = await _settle(call, Wanted(body.receipt_handle))
    return Acked(
        success=True,
        acknowledged=True,
        group=settled.place.group_id,
        topic=settled.place.topic,
        partition=settled.place.partition,
        offset=settled.offset,
        committed_offset=settled.settled_below,
        offset_advanced=settled.settled_below > settled.settled_before,
        in_flight_count=settled.leased,
    )


@acks.handles(operations.NACK, SETTLES)
async def nack(call: Call, body: Nack) -> Nacked:
    wanted = Wanted(body.receipt_handle, How.RETRY, _delay_ms(body.delay), body.reason or "")
    settled = await _settle(call, wanted)
    nacked = Nacked(
        success=True,
        requeued=not settled.is_dead,
        action="dlq" if settled.is_dying else "expired" if settled.is_dead else "requeued",
        group=settled.place.group_id,
        topic=settled.place.topic,
        partition=settled.place.partition,
        offset=settled.offset,
        delivery_count=settled.attempts,
        next_visible_at=None if settled.is_dead else format_moment(settled.visible_at_ms),
    )
    if settled.is_dying:
        nacked.dlq_topic = call.broker.dead_letters.name_of(settled.place.topic)
    return nacked


@acks.handles(operations.REJECT, SETTLES)
async def reject(call: Call, body: Reject) -> Rejected:
    reason = body.reason or ""
    settled = await _settle(call, Wanted(body.receipt_handle, How.REJECT, reason=reason))
    return Rejected(
        success=True,
        rejected=True,
        action="rejected",
        group=settled.place.group_id,
        topic=settled.place.topic,
        partition=settled.place.partition,
        offset=settled.offset,
        dlq_topic=call.broker.dead_letters.name_of(settled.place.topic),
        reason=reason,
    )


@acks.handles(operations.EXTEND_VISIBILITY, SETTLES)
async def extend_visibility(call: Call, body: Visibility) -> Extended:
    hold_ms = _hold_ms(body.timeout, body.extension_seconds)
    deadline_ms = call.now_ms + hold_ms
    settled = await _settle(call, Wanted(body.receipt_handle, How.EXTEND, hold_ms))
    return Extended(
        success=True,
        group=settled.place.group_id,
        topic=settled.place.topic,
        partition=settled.place.partition,
        offset=settled.offset,
        new_deadline=format_moment(deadline_ms),
        extended_by=f"{hold_ms // 1000}s" if hold_ms % 1000 == 0 else f"{hold_ms}ms",
    )


@acks.handles(operations.SETTLE_ALL, SETTLES)
async def settle_all(call: Call, body: SettleAll) -> SettledAll:
    entries = [*(body.messages or ()), *(Settlement(receipt_handle=each) for each in body.receipt_handles or ())]
    if not entries:
        raise HttpError(BAD_REQUEST, "INVALID_REQUEST", "there is nothing to settle: say messages or receipt_handles")
    outcomes: list[Verdict | GoQueueError] = [Verdict.UNKNOWN] * len(entries)
    wanted: list[tuple[int, Wanted]] = []
    for number, entry in enumerate(entries):
        try:
            wanted.append((number, _wanted(entry)))
        except GoQueueError as error:
            outcomes[number] = error.kept()
    answers: Sequence[Verdict | GoQueueError] = await call.ask(
        lambda done: call.broker.settler.settle([each for _, each in wanted], done)
    )
    for (number, _), answer in zip(wanted, answers):
        outcomes[number] = answer
    results = [_result(entry, outcome) for entry, outcome in zip(entries, outcomes)]
    succeeded = sum(each.success for each in results)
    return SettledAll(results=results, succeeded=succeeded, failed=len(results) - succeeded)


def _wanted(entry: Settlement) -> Wanted:
    how = HOWS[entry.action or "ack"]
    if how is How.EXTEND:
        return Wanted(entry.receipt_handle, how, _hold_ms(entry.timeout))
    return Wanted(entry.receipt_handle, how, _delay_ms(entry.delay), entry.reason or "")


def _result(entry: Settlement, outcome: Verdict | GoQueueError) -> SettleResult:
    result = SettleResult(
        receipt_handle=entry.receipt_handle, action=entry.action or "ack", success=outcome is Verdict.DONE, status=OK
    )
    if isinstance(outcome, GoQueueError):
        result.status, result.code = status_and_code(outcome)
        result.error = str(outcome)
    elif outcome is not Verdict.DONE:
        result.status, result.code, result.error = REFUSALS[outcome]
    return result


@acks.handles(operations.RELIABILITY_STATS, DESCRIBES_CLUSTER)
async def reliability_stats(call: Call) -> ReliabilityStats:
    now = await call.in_turns(call.broker.reliabilities.summing())
    return ReliabilityStats(
        ack_manager=AckStats(
            total_acks=now.acked,
            total_nacks=now.nacked,
            total_rejects=now.rejected,
            total_expired=now.lapsed,
            total_retries=now.retried,
            total_dlq=now.dead_letters,
            current_queued=now.waiting,
        ),
        visibility_tracker=VisibilityStats(
            total_tracked=now.leased,
            current_in_flight=now.in_flight,
            total_expired=now.lapsed,
            total_acked=now.acked,
            total_extended=now.extended,
        ),
        dlq=DeadLetterStats(
            total_routed=now.dead_letters,
            routes_by_reason=now.dead_by_reason,
            routes_by_topic=now.dead_by_topic,
            create_errors=now.create_errors,
            publish_errors=now.publish_errors,
        ),
        acks_total=now.acked,
        nacks_total=now.nacked,
        rejects_total=now.rejected,
        expired_total=now.lapsed,
        retries_total=now.retried,
        dlq_total=now.dead_letters,
        extensions_total=now.extended,
        deliveries_total=now.leased,
        in_flight=now.in_flight,
    )


BY_PLACE = {
    "ack": (How.ACK, BACKOFF, ""),
    "release": (How.RETRY, 0, "released by an operator"),
    "reject": (How.REJECT, BACKOFF, "rejected by an operator"),
    "extend": (How.EXTEND, 0, ""),
}


@acks.handles(operations.SETTLE_PLACE, RESETS)
async def settle_place(call: Call, path: GroupPath, body: SettlePlace) -> SettledPlace:
    call.topic(body.topic)
    place = Place(path.group, body.topic, body.partition)
    how, delay_ms, reason = BY_PLACE[body.action]
    if how is How.EXTEND:
        if body.timeout is None:
            raise HttpError(BAD_REQUEST, "INVALID_REQUEST", "to extend a lease, say a timeout, such as 10m")
        delay_ms = _hold_ms(body.timeout)
    queues, spot = call.broker.queues, f"{body.topic}/{body.partition}/{body.offset}"
    if body.offset >= queues.replica(place).high_watermark:  # whatever comes there later is nobody's yet
        raise HttpError(NOT_FOUND, "UNKNOWN_MESSAGE", f"there is no message {spot} yet")
    if not queues.has_group(path.group):
        raise HttpError(NOT_FOUND, "GROUP_ID_NOT_FOUND", f"there is no queue group {path.group!r}")
    state = queues.record_state(place, body.offset) if queues.is_open(place) else None  # a fork may not be begun there
    holder = (state.consumer or None) if state is not None else None  # that of a lease; else it is empty
    is_held = holder is not None
    lease = ANY_LEASE if is_held else NO_LEASE
    settlement = PlaceSettlement(body.offset, body.offset, how, delay_ms, body.reason or reason, lease)
    verdict = Verdict.UNKNOWN
    if is_held or how not in (How.RETRY, How.EXTEND):
        command = Settle(place, (settlement,), holder)
        reply: SettleReply = await call.ask(lambda done: queues.submit(command, done))
        (verdict,) = reply.verdicts
    if verdict is not Verdict.DONE:
        words = "is settled already" if verdict is Verdict.REPEATED else "is not held by anybody now"
        raise HttpError(CONFLICT, "NOT_LEASED", f"{spot} {words} in {path.group!r}")
    return SettledPlace(
        group=path.group, topic=body.topic, partition=body.partition, offset=body.offset, action=body.action
    )
