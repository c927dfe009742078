"""Dead letters: what groups gave up on."""

from collections.abc import Callable, Sequence
from typing import Any

from goqueue.doors.http.as_json import shown_content
from goqueue.doors.http.call import Call
from goqueue.doors.http.errors import BAD_REQUEST, CONFLICT, NOT_FOUND, HttpError
from goqueue.doors.http.filters import filter_of
from goqueue.doors.http.operation import Handlers, WithStatus
from goqueue.doors.http.permissions import DESCRIBES_TOPIC, READS, RESETS, SENDS_BACK
from goqueue.model.errors import GoQueueError
from goqueue.model.ledgers import LedgerKind
from goqueue.model.moments import format_moment, parse_duration_ms
from goqueue.records import dead_letters as names
from goqueue.records.decode import DecodedRecord
from goqueue.records.filters import RecordFilter
from goqueue.records.redrives import REDRIVES, RedriveJob, RedriveReport, RedriveRequest
from goqueue.wire.rest.dead_letters import (
    DeadLetter,
    DeadLetterPath,
    DeadLetterQuery,
    DeadLetters,
    Discarded,
    Purged,
    Redrive,
    RedriveReply,
)
from goqueue.wire.rest.operations import dead_letters as operations
from goqueue.wire.rest.topics import TopicPath

PAGE_BYTES_MAX = 8 * 1024 * 1024
WAIT_MS_MAX = 5 * 60_000
ACCEPTED = 202

dead_letters = Handlers(rests_on=(LedgerKind.DELIVERIES, LedgerKind.GROUPS))


@dead_letters.handles(operations.LIST_DEAD_LETTERS, READS)
async def list_dead_letters(call: Call, path: TopicPath, query: DeadLetterQuery) -> DeadLetters:
    topic = _source(call, path.topic)
    chosen = filter_of(query, call.now_ms)
    name = call.broker.dead_letters.name_of(topic)
    found: list[DeadLetter] = []
    following: str | None = None
    begin, offset = (int(part) for part in (query.cursor or "0/0").split("/"))
    partitions = _partitions(call, topic)
    for partition in call.broker.topics.led(name, range(begin, partitions)):
        records, rest = await _some(
            call, topic, (partition, offset if partition == begin else 0), query.limit - len(found), chosen
        )
        found += [_shown(call, topic, name, partition, each) for each in records]
        if rest is None and len(found) == query.limit and partition + 1 < partitions:
            partition, rest = partition + 1, 0  # noqa: PLW2901  the loop ends here
        if rest is not None:
            following = f"{partition}/{rest}"
            break
    return DeadLetters(topic=topic, dlq_topic=name, messages=found, count=len(found), next=following)


def _source(call: Call, topic: str) -> str:
    """Its dead letters may outlive a topic."""
    if call.broker.dead_letters.name_of(topic) not in call.broker.topics.image.topics:
        call.topic(topic)
    return topic


def _partitions(call: Call, topic: str) -> int:
    """None died yet: there is no topic for them."""
    found = call.broker.topics.image.topics.get(call.broker.dead_letters.name_of(topic))
    return 0 if found is None else found.partitions


async def _some(
    call: Call, topic: str, start: tuple[int, int], limit: int, chosen: RecordFilter
) -> tuple[list[DecodedRecord], int | None]:
    """Of one partition, and where to go on; None: that was all of it."""
    found: list[DecodedRecord] = []
    size = 0
    rest: int | None = None

    def take(records: list[DecodedRecord]) -> bool:
        nonlocal size, rest
        for record in records:
            if len(found) == limit or size > PAGE_BYTES_MAX:
                rest = record.offset
                return False
            if chosen.matches(record):
                found.append(record)
                size += len(record.value or b"") + len(record.key or b"")
        return True

    _: GoQueueError | None = await call.ask(
        lambda done: call.broker.dead_letters.scan(topic, start[0], take, done, start[1])
    )
    return found, rest


def _shown(call: Call, topic: str, dlq_topic: str, partition: int, record: DecodedRecord) -> DeadLetter:
    about = {name: (value or b"").decode(errors="replace") for name, value in record.headers}
    headers = [each for each in record.headers if not each[0].startswith(names.PREFIX) and each[0] != REDRIVES]
    return DeadLetter(
        dlq_topic=dlq_topic,
        partition=partition,
        offset=record.offset,
        original_topic=topic,
        original_partition=_number(about, names.PARTITION),
        original_offset=_number(about, names.OFFSET),
        original_timestamp=_moment(about, names.TIMESTAMP),
        group=call.broker.plain(about.get(names.GROUP, "")),
        reason=about.get(names.REASON, ""),
        error=about.get(names.ERROR, ""),
        attempts=max(0, _number(about, names.ATTEMPTS)),
        first_delivered_at=_moment(about, names.FIRST_DELIVERED),
        died_at=_moment(about, names.DIED_AT),
        redrives=max(0, _number(about, REDRIVES)),
        **shown_content(record.key, record.value, headers),
    )


def _number(about: dict[str, str], name: str) -> int:
    """-1: not told, as by somebody who writes into the topic of dead letters himself."""
    text = about.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else -1


def _moment(about: dict[str, str], name: str) -> str | None:
    moment_ms = _number(about, name)
    return None if moment_ms < 0 else format_moment(moment_ms)


@dead_letters.handles(operations.LOOK_AT_DEAD_LETTER, READS)
async def look_at_dead_letter(call: Call, path: DeadLetterPath) -> DeadLetter:
    name = call.broker.dead_letters.name_of(path.topic)
    return _shown(call, path.topic, name, path.partition, await _one(call, path))


async def _one(call: Call, path: DeadLetterPath) -> DecodedRecord:
    topic = _source(call, path.topic)
    found: list[DecodedRecord] = []
    if path.partition < _partitions(call, topic):
        found, _ = await _some(call, topic, (path.partition, path.offset), 1, RecordFilter())
    if not found or found[0].offset != path.offset:
        place = f"{path.topic}/{path.partition}/{path.offset}"
        raise HttpError(NOT_FOUND, "NO_DEAD_LETTER", f"no dead letter at {place} is left to be dealt with")
    return found[0]


@dead_letters.handles(operations.DISCARD_DEAD_LETTER, RESETS)
async def discard_dead_letter(call: Call, path: DeadLetterPath) -> Discarded:
    await _one(call, path)
    letters, spot = call.broker.dead_letters, (path.partition, path.offset)
    _: GoQueueError | None = await call.ask(lambda done: letters.discard(letters.name_of(path.topic), *spot, done))
    return Discarded(discarded=True, topic=path.topic, partition=path.partition, offset=path.offset)


@dead_letters.handles(operations.REDRIVE, SENDS_BACK)
async def redrive(call: Call, path: TopicPath, body: Redrive) -> RedriveReply | WithStatus:
    topic = _source(call, path.topic)
    if body.to is not None:
        call.topic(body.to)
    wait_ms = parse_duration_ms(body.wait)
    if wait_ms > WAIT_MS_MAX:
        raise HttpError(BAD_REQUEST, "INVALID_REQUEST", f"wait may be {WAIT_MS_MAX // 60_000} minutes at most")
    request = RedriveRequest(
        topic,
        body.to,
        filter_of(body.filter, call.now_ms),
        body.dry_run,
        body.rate,
        body.redrives_max,
        None if body.places is None else _by_partition(body.places),
    )
    last = call.broker.dead_letters.last_redrive(topic)
    if last is not None and last.ended_ms is None and not body.dry_run:
        raise HttpError(CONFLICT, "REDRIVE_UNDER_WAY", f"dead letters of {topic!r} are being sent back already")
    jobs: list[RedriveJob | None] = []

    def start(done: Callable[[Any], None]) -> None:
        timer = call.broker.clock.call_after(wait_ms, lambda: done(None))

        def ended(reply: RedriveReport | GoQueueError) -> None:
            timer.cancel()
            done(reply)

        jobs.append(call.broker.dead_letters.redrive(request, ended))

    await call.ask(start)
    (job,) = jobs
    assert job is not None
    reply = _told(call, job, topic)
    return WithStatus(ACCEPTED, reply) if job.ended_ms is None else reply


def _by_partition(places: Sequence[str]) -> dict[int, frozenset[int]]:
    found: dict[int, set[int]] = {}
    for place in places:
        partition, _, offset = place.partition("/")
        found.setdefault(int(partition), set()).add(int(offset))
    return {partition: frozenset(offsets) for partition, offsets in found.items()}


def _told(call: Call, job: RedriveJob, topic: str) -> RedriveReply:
    report = job.report
    errors = report.errors if job.error is None else [*report.errors, str(job.error)]
    if job.ended_ms is None:
        state = "stopping" if job.is_stopped else "running"
    elif job.error is not None:
        state = "failed"
    else:
        state = "stopped" if job.is_stopped else "done"
    return RedriveReply(
        topic=topic,
        state=state,
        dry_run=job.request.is_dry_run,
        redriven=report.redriven,
        filtered_out=report.filtered_out,
        looping=report.looping,
        failed=report.failed,
        errors=[call.broker.words(each) for each in errors],
        started_at=format_moment(job.started_ms),
        ended_at=None if job.ended_ms is None else format_moment(job.ended_ms),
    )


def _job(call: Call, topic: str) -> RedriveJob:
    job = call.broker.dead_letters.last_redrive(_source(call, topic))
    if job is None:
        raise HttpError(NOT_FOUND, "NO_REDRIVE", f"no redrive of {topic!r} was asked for since this node started")
    return job


@dead_letters.handles(operations.LOOK_AT_REDRIVE, DESCRIBES_TOPIC)
async def look_at_redrive(call: Call, path: TopicPath) -> RedriveReply:
    return _told(call, _job(call, path.topic), _source(call, path.topic))


@dead_letters.handles(operations.STOP_REDRIVE, SENDS_BACK)
async def stop_redrive(call: Call, path: TopicPath) -> RedriveReply:
    job = _job(call, path.topic)
    if job.ended_ms is None:
        job.stop()
    return _told(call, job, _source(call, path.topic))


@dead_letters.handles(operations.PURGE_DEAD_LETTERS, RESETS)
async def purge_dead_letters(call: Call, path: TopicPath) -> Purged:
    topic = _source(call, path.topic)
    purged: int = await call.ask(lambda done: call.broker.dead_letters.purge(topic, done))
    return Purged(topic=topic, purged=purged)
