"""All that happened to messages and is stored, for programs that read all of it."""

import asyncio

from goqueue.broker.view.view import View
from goqueue.doors.http.call import Call
from goqueue.doors.http.operation import Handlers
from goqueue.doors.http.permissions import DESCRIBES_TOPIC
from goqueue.doors.http.routes.traces import detail_of
from goqueue.model.moments import format_moment
from goqueue.telemetry.journeys import Step
from goqueue.telemetry.spans import NAMES
from goqueue.telemetry.trace_ids import Spot
from goqueue.telemetry.traces import Chapter
from goqueue.wire.rest.operations import traces as operations
from goqueue.wire.rest.traces import StepsQuery, StoredStep, StoredSteps

FOR_EVER = 2**63 - 1

trace_steps = Handlers()


@trace_steps.handles(operations.STORED_STEPS, DESCRIBES_TOPIC)
async def stored_steps(call: Call, query: StepsQuery) -> StoredSteps:
    until = FOR_EVER if query.until is None else query.until
    chapter = call.broker.tracing.journal.read(query.cursor, until)
    steps = await asyncio.to_thread(_stored_steps, call.broker, chapter, query.topic)
    following = chapter.next if chapter.next < min(chapter.end, until) else None
    return StoredSteps(steps=steps, next=following, first=chapter.first, end=chapter.end)


def _stored_steps(broker: View, chapter: Chapter, topic: str | None) -> list[StoredStep]:
    steps = []
    for number, note in broker.tracing.journal.notes_of(chapter):
        every = broker.tracing.journeys.stride(note.step)
        if not every or not 0 <= note.first <= note.last or topic not in (None, note.topic):
            continue
        step = StoredStep(
            timestamp=format_moment(note.at_ms),
            event_type=NAMES[note.step],
            topic=note.topic,
            partition=note.partition,
            first_offset=note.first,
            last_offset=note.last,
            every=every,
            cursor=number,
        )
        if note.group:
            step.consumer_group = note.group
        if note.consumer:
            step.consumer_id = note.consumer
        if note.step is Step.DUE:
            step.moved_to = int(note.detail)
        elif detail := detail_of(note, Spot(note.topic, note.partition, note.first)):
            step.detail = detail
        steps.append(step)
    return steps
