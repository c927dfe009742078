"""Leases as wholes: taken without content, held longer, finished; and all that are held now."""

from typing import Any

from goqueue.broker.queues.taking import BYTES_MAX, LeasedPlace, ReceiveRequest
from goqueue.broker.queues.whole_leases import Run
from goqueue.doors.http.call import Call
from goqueue.doors.http.errors import BAD_REQUEST, HttpError
from goqueue.doors.http.leased import lease, lease_ms_of, wait_ms_of
from goqueue.doors.http.operation import Handlers
from goqueue.doors.http.permissions import DESCRIBES_GROUP, READS, SETTLES
from goqueue.machines.deliveries.commands import HeldRun, Place
from goqueue.model.ledgers import LedgerKind
from goqueue.model.moments import format_moment
from goqueue.wire.rest.groups import GroupPath
from goqueue.wire.rest.leases import (
    ExtendLeases,
    FinishLeases,
    HeldLease,
    HeldLeases,
    LeaseCounts,
    LeasesQuery,
    TakeLeases,
    TakenLease,
    TakenLeases,
)
from goqueue.wire.rest.operations import leases as operations

CONSUMER = "http"


leases = Handlers(rests_on=(LedgerKind.DELIVERIES,))


@leases.handles(operations.TAKE_LEASES, READS)
async def take_leases(call: Call, path: GroupPath, body: TakeLeases) -> TakenLeases:
    topics = [call.topic(name) for name in dict.fromkeys(body.topics)]
    request = ReceiveRequest(
        group_id=path.group,
        consumer=body.consumer or CONSUMER,
        places=[(topic.name, number) for topic in topics for number in range(topic.partitions)],
        records_max=body.max_messages,
        bytes_max=BYTES_MAX,
        wait_ms=wait_ms_of(body.wait or 0),
        lease_ms=lease_ms_of(body.lease),
        start=body.start or "earliest",
        is_read=False,
    )
    found: list[LeasedPlace] = await lease(
        call, path.group, lambda done: call.broker.receiver.receive(request, done), lambda reply: reply, []
    )
    taken = [_taken(call, path.group, each) for each in found if each.error is None]
    for each in found:
        if each.error is not None and not taken:
            raise each.error
    return TakenLeases(leases=taken, messages=sum(last + 1 - first for one in taken for first, last, _ in one.runs))


def _taken(call: Call, group_id: str, leased: LeasedPlace) -> TakenLease:
    assert leased.slices is not None
    runs = [[run.first, run.last, run.attempt] for run in leased.slices.runs]
    place = Place(group_id, leased.topic, leased.partition)
    first, last = min(run[0] for run in runs), max(run[1] for run in runs)
    return TakenLease(
        topic=leased.topic,
        partition=leased.partition,
        receipt=call.broker.settler.lease_receipt(place, first, last, leased.lease, leased.epoch),
        until=format_moment(leased.deadline_ms),
        runs=runs,
    )


@leases.handles(operations.EXTEND_LEASES, SETTLES)
async def extend_leases(call: Call, body: ExtendLeases) -> LeaseCounts:
    hold_ms = lease_ms_of(body.timeout)
    assert hold_ms is not None
    leases = call.broker.leases
    counts = [
        await call.ask(lambda done, receipt=receipt: leases.extend(receipt, hold_ms, done))  # type: ignore[misc]
        for receipt in body.receipts
    ]
    return LeaseCounts(messages=counts)


@leases.handles(operations.FINISH_LEASES, SETTLES)
async def finish_leases(call: Call, body: FinishLeases) -> LeaseCounts:
    leases, counts = call.broker.leases, []
    for one in body.leases:
        runs = [Run(*each) for each in one.runs or ()]
        if any(not 0 <= run.first <= run.last for run in runs):
            raise HttpError(BAD_REQUEST, "INVALID_REQUEST", "a run has a first and a last offset, in that order")
        counts.append(
            await call.ask(lambda done, one=one, runs=runs: leases.finish(one.receipt, runs, done))  # type: ignore[misc]
        )
    return LeaseCounts(messages=counts)


@leases.handles(operations.LIST_LEASES, DESCRIBES_GROUP)
async def list_leases(call: Call, query: LeasesQuery) -> HeldLeases:
    runs = call.broker.leases.held(query.group, query.topic)
    if query.cursor is not None:
        after = _position(query.cursor)
        runs = [run for run in runs if (*run.place, run.first) > after]
    page = runs[: query.limit]
    following = None
    if len(runs) > len(page):
        following = "/".join(str(part) for part in (*page[-1].place, page[-1].first))
    return HeldLeases(leases=[_shown(run) for run in page], count=len(page), next=following)


def _position(cursor: str) -> tuple[Any, ...]:
    group_id, topic, partition, first = cursor.rsplit("/", 3)  # names of groups may have slashes
    return group_id, topic, int(partition), int(first)


def _shown(run: HeldRun) -> HeldLease:
    return HeldLease(
        group=run.place.group_id,
        topic=run.place.topic,
        partition=run.place.partition,
        first_offset=run.first,
        last_offset=run.last,
        messages=run.last + 1 - run.first,
        consumer=run.consumer,
        delivery_count=run.attempt,
        leased_at=format_moment(run.leased_ms),
        lease_until=format_moment(run.deadline_ms),
    )
