"""Journeys of messages: what happened to them, and where they are now."""

import asyncio
from collections.abc import Iterator

import msgspec

from goqueue.broker.tracing.tracing import KeySearch
from goqueue.broker.tracing.why import Answer, GroupAnswer, seen
from goqueue.doors.http.call import Call
from goqueue.doors.http.errors import BAD_REQUEST, NOT_FOUND, HttpError
from goqueue.doors.http.operation import Handlers
from goqueue.doors.http.permissions import DESCRIBES_GROUP, DESCRIBES_TOPIC
from goqueue.model.access import Kind, Operation
from goqueue.model.ledgers import LedgerKind
from goqueue.model.moments import format_moment, parse_moment_ms
from goqueue.records.decode import DecodedRecord
from goqueue.telemetry.journeys import Note, Step
from goqueue.telemetry.spans import ENDS, NAMES, error_of
from goqueue.telemetry.trace_ids import Spot
from goqueue.telemetry.traces import ALL_PARTITIONS, Journey, TraceFilter
from goqueue.wire.rest.operations import traces as operations
from goqueue.wire.rest.traces import (
    GroupState,
    TraceDetails,
    TraceEvent,
    TraceList,
    TracePath,
    TraceSearchQuery,
    TraceSearchResult,
    TraceSpan,
    TracesQuery,
    TraceStats,
    TraceSummary,
    Where,
    WhereKeyPath,
    WhereKeyQuery,
    WherePath,
)

MS_NS = 1_000_000

traces = Handlers(rests_on=(LedgerKind.DELAYS, LedgerKind.DELIVERIES, LedgerKind.GROUPS))


@traces.handles(operations.LIST_TRACES, DESCRIBES_TOPIC)
async def list_traces(call: Call, query: TracesQuery) -> TraceList:
    found, total = await _search(call, await _wanted(call, query), query.limit)
    return TraceList(traces=found, total=total)


@traces.handles(operations.SEARCH_TRACES, DESCRIBES_TOPIC)
async def search_traces(call: Call, query: TraceSearchQuery) -> TraceSearchResult:
    following = None
    with_spans = query.spans is True
    if query.cursor is not None:
        by_spots = (query.key, query.trace_id, query.offset)
        if query.topic is None or query.partition == ALL_PARTITIONS or any(each is not None for each in by_spots):
            message = "a cursor needs one topic and one partition, and takes no key, trace_id or offset"
            raise HttpError(BAD_REQUEST, "INVALID_REQUEST", message)
        page = call.broker.tracing.traces.page
        wanted = _filter(call, query)
        journeys, following = await asyncio.to_thread(page, wanted, int(query.cursor), query.limit, _notes(call))
        found, total = _summaries(call, journeys, with_spans=with_spans), len(journeys)
    else:
        found, total = await _search(call, await _wanted(call, query), query.limit, with_spans=with_spans)
    said = {name: value for name, value in msgspec.structs.asdict(query).items() if value is not None}
    cursor = None if following is None else str(following)
    return TraceSearchResult(traces=found, total=total, query=said, next=cursor)


def _filter(call: Call, query: TracesQuery) -> TraceFilter:
    now_ms = call.now_ms
    return TraceFilter(
        query.topic,
        query.partition,
        query.consumer_group,
        None if query.start is None else parse_moment_ms(query.start, now_ms),
        None if query.end is None else parse_moment_ms(query.end, now_ms),
        query.status,
    )


async def _wanted(call: Call, query: TracesQuery) -> TraceFilter:
    """With the records that a trace, an offset or a key stands for."""
    chosen: list[frozenset[Spot]] = []
    if query.trace_id is not None:
        call.broker.tracing.journal.catch_up()
        chosen.append(frozenset(call.broker.tracing.traces.spots(query.trace_id)))
    if query.offset is not None:
        if query.topic is None or query.partition == ALL_PARTITIONS:
            raise HttpError(BAD_REQUEST, "INVALID_REQUEST", "an offset needs a topic and a partition")
        chosen.append(frozenset({Spot(query.topic, query.partition, query.offset)}))
    if query.key is not None:
        if query.topic is None:
            raise HttpError(BAD_REQUEST, "INVALID_REQUEST", "a key is looked for in one topic: say which")
        chosen.append(frozenset(spot for spot, _ in await _of_key(call, query.topic, query.key, query.limit)))
    wanted = _filter(call, query)
    return wanted._replace(spots=frozenset.intersection(*chosen)) if chosen else wanted


async def _search(
    call: Call, wanted: TraceFilter, limit: int, *, with_spans: bool = False
) -> tuple[list[TraceSummary], int]:
    found, total = await asyncio.to_thread(call.broker.tracing.traces.search, wanted, limit, _notes(call))
    return _summaries(call, found, with_spans=with_spans), total


def _notes(call: Call) -> list[Note]:
    tracing = call.broker.tracing
    tracing.journal.catch_up()
    return tracing.journeys.kept()


def _summaries(call: Call, journeys: list[Journey], *, with_spans: bool) -> list[TraceSummary]:
    summaries = [_summary(each) for each in journeys]
    if with_spans:
        for journey, summary in zip(journeys, summaries):
            summary.spans = _spans(call, journey)
    return summaries


@traces.handles(operations.TRACE_STATS, DESCRIBES_TOPIC)
async def trace_stats(call: Call) -> TraceStats:
    tracing = call.broker.tracing
    tracing.journal.catch_up()
    journeys, exporting = tracing.journeys, tracing.exporting
    steps = {NAMES[step]: sum(journeys.counts[step].values()) for step in Step}
    return TraceStats(
        enabled=journeys.sampling > 0,
        sampling_rate=journeys.sampling,
        spans_in_buffer=len(journeys.kept()),
        buffer_capacity=journeys.capacity,
        traces_indexed=len(tracing.identities.parents),
        exporters_enabled=[] if exporting is None else [exporting.name],
        traces_total=steps[NAMES[Step.RECEIVED]],
        notes_total=journeys.noted,
        notes_stored=tracing.journal.stored,
        notes_not_stored=tracing.journal.not_stored,
        records_not_indexed=tracing.index.skipped,
        spans_exported=0 if exporting is None else exporting.exported,
        spans_failed=0 if exporting is None else exporting.failed,
        spans_dropped=0 if exporting is None else exporting.spans_dropped + exporting.notes_dropped,
        steps={name: count for name, count in steps.items() if count},
    )


@traces.handles(operations.DESCRIBE_TRACE, DESCRIBES_TOPIC)
async def describe_trace(call: Call, path: TracePath) -> TraceDetails:
    tracing = call.broker.tracing
    tracing.journal.catch_up()
    found = [each for each in tracing.traces.of_trace(path.id) if each.steps]
    if not found:
        raise HttpError(NOT_FOUND, "UNKNOWN_TRACE", f"nothing is remembered of trace {path.id}")
    summaries = [_summary(each) for each in found]
    start_ms, end_ms = min(each.start_ms for each in found), max(each.end_ms for each in found)
    statuses = {each.status for each in summaries}
    return TraceDetails(
        trace_id=path.id,
        topic=summaries[0].topic,
        partition=summaries[0].partition,
        offset=summaries[0].offset,
        start_time=format_moment(start_ms),
        end_time=format_moment(end_ms),
        duration_ms=end_ms - start_ms,
        status=next(each for each in ("error", "pending", "completed") if each in statuses),
        span_count=sum(each.span_count for each in summaries),
        spans=[span for each in found for span in _spans(call, each)],
        events=[event for each in found for event in _events(each)],
    )


@traces.handles(operations.WHERE_IS, DESCRIBES_GROUP)
async def where_is(call: Call, path: WherePath) -> Where:
    call.topic(path.topic)
    return await _where(call, Spot(path.topic, path.partition, path.offset))


@traces.handles(operations.WHERE_IS_KEY, DESCRIBES_GROUP)
async def where_is_key(call: Call, path: WhereKeyPath, query: WhereKeyQuery) -> Where:
    call.topic(path.topic)
    found = await _of_key(call, path.topic, query.key, 1)
    if not found:
        raise HttpError(NOT_FOUND, "UNKNOWN_KEY", f"no recent message of {path.topic!r} has this key")
    return await _where(call, found[0][0])


async def _of_key(call: Call, topic: str, key: str, limit: int) -> list[tuple[Spot, DecodedRecord]]:
    call.topic(topic)
    broker = call.broker
    found: list[tuple[Spot, DecodedRecord]] = await call.ask(
        lambda done: KeySearch(broker.topics, broker.clock, topic, key.encode(), limit, done).start()
    )
    return found


async def _where(call: Call, spot: Spot) -> Where:
    tracing = call.broker.tracing
    tracing.journal.catch_up()
    told: Answer = await call.ask(lambda done: tracing.why.ask(spot, done))
    answer = seen(told, lambda group: bool(call.broker.allowed(Kind.GROUP, group, (Operation.DESCRIBE,))))
    parent = tracing.identities.parent(answer.spot)
    where = Where(
        topic=answer.spot.topic,
        partition=answer.spot.partition,
        offset=answer.spot.offset,
        first_offset=answer.journey.spot.offset,
        trace_id=answer.journey.trace_id,
        state=answer.state,
        answer=answer.answer,
        groups=[_group(each) for each in answer.groups],
        events=list(_events(answer.journey)),
        node=f"node-{call.broker.identity.node_id}",
    )
    if parent is not None:
        where.traceparent = parent.header
    if answer.record is not None:
        where.timestamp = format_moment(answer.record.timestamp)
        where.key = None if answer.record.key is None else answer.record.key.decode(errors="replace")
    return where


def _group(answer: GroupAnswer) -> GroupState:
    shown = GroupState(group=answer.group, kind=answer.kind, state=answer.state, answer=answer.answer)
    if answer.lane:
        shown.lane = answer.lane
    if answer.kind == "queue" and answer.state != "settled":
        shown.attempts = answer.attempts
    if answer.consumer:
        shown.consumer = answer.consumer
    if answer.until_ms is not None:
        shown.until = format_moment(answer.until_ms)
    for name in ("behind_offset", "ahead", "committed_offset"):
        if getattr(answer, name) is not None:
            setattr(shown, name, getattr(answer, name))
    return shown


def _summary(journey: Journey) -> TraceSummary:
    return TraceSummary(
        trace_id=journey.trace_id,
        topic=journey.spot.topic,
        partition=journey.spot.partition,
        offset=journey.spot.offset,
        start_time=format_moment(journey.start_ms),
        end_time=format_moment(journey.end_ms),
        duration_ms=max(0, journey.end_ms - journey.start_ms),
        status=journey.status,
        span_count=len(journey.steps),
    )


def _events(journey: Journey) -> Iterator[TraceEvent]:
    for spot, note in journey.steps:
        details: dict[str, object] = {"topic": spot.topic, "partition": spot.partition, "offset": spot.offset}
        about = {"consumer_group": note.group, "consumer_id": note.consumer, "detail": detail_of(note, spot)}
        details |= {name: value for name, value in about.items() if value}
        yield TraceEvent(timestamp=format_moment(note.at_ms), event_type=NAMES[note.step], details=details)


def _spans(call: Call, journey: Journey) -> list[TraceSpan]:
    """One per step, with the ids that exported spans have: the publish, and each delivery under it."""
    ids = call.broker.tracing.identities
    found: list[TraceSpan] = []
    leases: dict[str, tuple[TraceSpan, int]] = {}
    """By group: the delivery that goes on, and since when."""
    for spot, note in journey.steps:
        span = TraceSpan(
            span_id=ids.step_span(spot, note),
            event_type=NAMES[note.step],
            timestamp=format_moment(note.at_ms),
            topic=spot.topic,
            partition=spot.partition,
            offset=spot.offset,
            parent_span_id=ids.publish_span(spot),
        )
        _describe(span, note, spot)
        if note.step is Step.RECEIVED:
            parent = ids.parent(spot)
            span.span_id = ids.publish_span(spot)
            span.parent_span_id = msgspec.UNSET if parent is None else parent.span_id
        elif note.step is Step.DUE:
            span.span_id = ids.publish_span(_published_as(note, spot))
        elif note.step is Step.LEASED:
            span.span_id = ids.delivery_span(spot, note.group, note.consumer, note.at_ms)
            leases[note.group] = span, note.at_ms
        elif note.step in ENDS and note.group in leases:
            delivery, leased_ms = leases.pop(note.group)
            span.parent_span_id = delivery.span_id
            delivery.duration_ns = max(0, note.at_ms - leased_ms) * MS_NS
        found.append(span)
    return found


def detail_of(note: Note, spot: Spot) -> str:
    """For a person; in notes some are bare numbers."""
    if note.step is Step.SCHEDULED:
        return f"due at {format_moment(int(note.detail))}"
    if note.step is Step.DUE:
        return f"published as offset {_published_as(note, spot).offset}"
    return note.detail


def _published_as(due: Note, spot: Spot) -> Spot:
    return spot._replace(offset=int(due.detail) + spot.offset - due.first)


def _describe(span: TraceSpan, note: Note, spot: Spot) -> None:
    if note.group:
        span.consumer_group = note.group
    if note.consumer:
        span.consumer_id = note.consumer
    if error := error_of(note):
        span.error = error
    elif detail := detail_of(note, spot):
        span.attributes = {"detail": detail}
