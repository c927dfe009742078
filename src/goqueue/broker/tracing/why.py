"""Where is my message, and why is it not delivered yet? Answered in words, from what is true now."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from goqueue.broker.delays.schedules import Schedules
from goqueue.broker.groups.lag import Lag, Reader
from goqueue.broker.queues.queues import Queues
from goqueue.broker.queues.receive import Receiver
from goqueue.broker.topics.topics import Topics
from goqueue.broker.tracing.traces import Traces
from goqueue.machines.delays.commands import ScheduleKey
from goqueue.machines.deliveries.commands import Place
from goqueue.machines.deliveries.why import Matter, RecordState
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.group_options import DELIVERY, PAUSED
from goqueue.model.lanes import Lane
from goqueue.model.moments import format_moment
from goqueue.model.refusal import Refused
from goqueue.records.batch import split
from goqueue.records.decode import DecodedRecord
from goqueue.records.portions import find_record
from goqueue.replica.replica import Replica
from goqueue.runtime.clock import Clock
from goqueue.telemetry.journeys import Note, Step
from goqueue.telemetry.spans import moved_to
from goqueue.telemetry.trace_ids import Spot
from goqueue.telemetry.traces import Journey

OUR_GROUPS = "gq."
"""Groups of our own have such names."""
READ_BYTES_MAX = 16 * 1024 * 1024
"""Of the batch of one record, unpacked: so much at once."""
SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS = 1000, 60_000, 3_600_000, 86_400_000
_LEASED_NEXT = {Matter.READY, Matter.WAITING, Matter.HELD, Matter.NOT_SEEN}
"""What a pause keeps from being delivered."""
_ENDS = {Step.ACKED, Step.DEAD_LETTERED, Step.EXPIRED, Step.REMOVED}


class GroupAnswer(NamedTuple):
    group: str
    kind: str
    """queue or stream"""
    state: str
    answer: str
    lane: str = ""
    attempts: int = 0
    consumer: str = ""
    until_ms: int | None = None
    behind_offset: int | None = None
    ahead: int | None = None
    committed_offset: int | None = None


class Answer(NamedTuple):
    journey: Journey
    spot: Spot
    """Where it is now."""
    state: str
    answer: str
    groups: Sequence[GroupAnswer]
    record: DecodedRecord | None


class Why:
    def __init__(
        self,
        topics: Topics,
        traces: Traces,
        queues: Queues,
        receiver: Receiver,
        schedules: Schedules,
        lag: Lag,
        clock: Clock,
    ) -> None:
        self._topics = topics
        self._traces = traces
        self._queues = queues
        self._receiver = receiver
        self._schedules = schedules
        self._lag = lag
        self._clock = clock

    def ask(self, spot: Spot, on_answer: Callable[[Answer | GoQueueError], None]) -> None:
        """Refused: there is no such partition, or no such offset yet."""
        try:
            replica = self._topics.replica(spot.topic, spot.partition)
            if not 0 <= spot.offset < replica.end_offset:
                end = replica.end_offset
                raise Refused(Code.OFFSET_OUT_OF_RANGE, f"there is no offset {spot.offset} yet; the next is {end}")
            journey = self._traces.journey(spot)
            now = next((each for each, _ in reversed(journey.steps) if each != journey.spot), spot)
            state, answer, record = self._of_log(replica, journey, now)
        except GoQueueError as error:
            on_answer(error)
            return
        if state:
            on_answer(Answer(journey, now, state, answer, (), record))
            return

        def told(readers: list[Reader]) -> None:
            try:
                on_answer(self._of_groups(journey, now, record, readers))
            except GoQueueError as error:
                on_answer(error)

        self._lag.readers(now.topic, now.partition, told)

    # -- before any group comes to it

    def _of_log(self, replica: Replica, journey: Journey, spot: Spot) -> tuple[str, str, DecodedRecord | None]:
        """A state and its words, if the log itself says why no group can have it; else its record."""
        found = self._of_delay(spot) or _out_of_reach(replica, spot.offset)
        if found is not None:
            return *found, None
        record = read_record(replica, spot.offset)
        if record is None:
            cancelled = _last(journey, {Step.CANCELLED})
            if cancelled is None:
                return "no message", "there is no message at this offset: a marker, or compacted away", None
            why = f" ({cancelled.detail})" if cancelled.detail else ""
            return "cancelled", f"cancelled at {format_moment(cancelled.at_ms)}, before it was due{why}", None
        if _is_aborted(replica, spot.offset):
            return "aborted", "its transaction was aborted: nobody will see it", record
        return "", "", record

    def _of_delay(self, spot: Spot) -> tuple[str, str] | None:
        key = ScheduleKey(*spot)
        waiting = self._schedules.find_schedule(key)
        if waiting is not None and waiting.waits_for_transaction:
            return "scheduled", "its transaction is still open; after that it waits for its time"
        if waiting is not None:
            return "scheduled", f"not due yet: waiting until {self._until(waiting.due_ms)}"
        if self._schedules.is_firing(key):
            return "due", "its time has come: it is being published just now"
        return None

    # -- groups

    def _of_groups(
        self, journey: Journey, spot: Spot, record: DecodedRecord | None, readers: Sequence[Reader]
    ) -> Answer:
        answers = [
            self._of_queue(place, spot, journey)
            for place in self._queues.readers(spot.topic, spot.partition)
            if not place.group_id.startswith(OUR_GROUPS)
        ]
        answers += [_of_stream(each.group_id, each.committed, spot.offset, each.owner) for each in readers]
        if not answers:
            return Answer(journey, spot, "published", "published, and no group has read this topic yet", (), record)
        return Answer(journey, spot, *_together(answers), answers, record)

    def _of_queue(self, place: Place, spot: Spot, journey: Journey) -> GroupAnswer:
        if not self._queues.is_open(place):  # a fork that nobody has received from
            return GroupAnswer(place.group_id, "queue", Matter.NOT_SEEN.value, "this group has not begun to read here")
        state = self._queues.record_state(place, spot.offset)
        name = Lane(state.lane).name.lower() if state.matter is not Matter.SETTLED else ""
        answer = GroupAnswer(place.group_id, "queue", state.matter.value, "", name, state.attempts)
        if state.matter in _LEASED_NEXT and self._queues.is_paused(place):
            words = f"{self._pauser(place)} is paused: nothing is delivered until it is resumed"
            return answer._replace(state="paused", answer=words)
        match state.matter:
            case Matter.LEASED:
                words = f"leased by {state.consumer} for {_span(state.until_ms - self._clock.now_ms())} more"
                words += f", attempt {state.attempts}"
                answer = answer._replace(answer=words, consumer=state.consumer, until_ms=state.until_ms)
            case Matter.WAITING:
                words = f"attempt {state.attempts} failed: waiting until {self._until(state.until_ms)} for the next"
                answer = answer._replace(answer=words, until_ms=state.until_ms)
            case Matter.HELD:
                words = f"held behind offset {state.behind} of the same key"
                answer = answer._replace(answer=words, behind_offset=state.behind)
            case Matter.READY:
                answer = answer._replace(answer=self._ready(place, state), ahead=state.ahead)
            case Matter.SETTLED:
                answer = _settled(answer, journey, spot)
            case Matter.DYING:
                answer = answer._replace(answer=f"its dead letter is being written, because {state.reason}")
            case Matter.NOT_SEEN:
                answer = answer._replace(answer="ready behind all that this group has still to look at")
            case Matter.NOT_FOR_US:
                answer = answer._replace(answer="not for this group: a marker, or an aborted transaction")
        return answer

    def _pauser(self, place: Place) -> str:
        is_own = self._queues.options(place.group_id).get(DELIVERY) == PAUSED
        return f"the group {place.group_id}" if is_own else f"the topic {place.topic}"

    def _ready(self, place: Place, state: RecordState) -> str:
        words = f"ready in lane {Lane(state.lane).name.lower()}"
        if state.ahead:
            words += f" behind {state.ahead} of the same lane"
        others = [
            f"{count} in lane {Lane(lane).name.lower()}"
            for lane, count in enumerate(state.ahead_in_lanes)
            if count and lane != state.lane
        ]
        if others:
            words += f", sharing with {' and '.join(others)}"
        if state.is_replay:
            words += ", to be delivered again by a replay"
        if state.is_choked:
            return f"{words}; too many dead letters have to be written first"
        if state.expires_at_ms is not None:
            words += f", expires at {self._until(state.expires_at_ms)}"
        return words if self._receiver.is_asked(place) else f"{words}; no consumer is asking"

    def _until(self, moment_ms: int) -> str:
        left_ms = moment_ms - self._clock.now_ms()
        return f"{format_moment(moment_ms)} (in {_span(left_ms)})" if left_ms > 0 else format_moment(moment_ms)


def _together(answers: Sequence[GroupAnswer]) -> tuple[str, str]:
    states = {each.state for each in answers}
    words = "; ".join(f"{each.group}: {each.answer}" for each in answers)
    return states.pop() if len(states) == 1 else "mixed", words


def seen(answer: Answer, may_see: Callable[[str], bool]) -> Answer:
    """What is left of it for somebody who may see these groups."""
    journey = answer.journey
    steps = [(spot, note) for spot, note in journey.steps if not note.group or may_see(note.group)]
    groups = [each for each in answer.groups if may_see(each.group)]
    left = answer._replace(journey=journey._replace(steps=steps), groups=groups)
    if len(groups) == len(answer.groups):
        return left
    state, words = _together(groups) if groups else ("published", "published, and read by groups of others")
    return left._replace(state=state, answer=words)


def _settled(answer: GroupAnswer, journey: Journey, spot: Spot) -> GroupAnswer:
    note = _last(journey, _ENDS, answer.group)
    if note is None:
        return answer._replace(answer="settled; when and how is no longer remembered")
    at = format_moment(note.at_ms)
    match note.step:
        case Step.DEAD_LETTERED:
            letter = moved_to(note, spot.offset)
            where = "" if letter is None else f"; it is {letter.topic}/{letter.partition}/{letter.offset} now"
            why = note.detail.rpartition("; now ")[0]
            return answer._replace(state="dead-lettered", answer=f"dead-lettered at {at} because {why}{where}")
        case Step.EXPIRED:
            return answer._replace(state="expired", answer=f"expired at {at}, before it was settled")
        case Step.REMOVED:
            return answer._replace(state="removed", answer=f"removed by retention at {at}, before it was settled")
    leased = _last(journey, {Step.LEASED}, answer.group)
    by = f" by {leased.consumer}" if leased is not None and leased.consumer else ""
    late = ", after its lease was over" if note.detail else ""
    return answer._replace(answer=f"settled: acked at {at}{by}{late}")


def _out_of_reach(replica: Replica, offset: int) -> tuple[str, str] | None:
    if offset < replica.start_offset:
        return "removed", "retention has removed it from its log"
    if offset >= replica.high_watermark:
        return "received", "received, but not as durable as its topic asks for yet"
    if offset >= replica.last_stable_offset:
        return "in a transaction", "its transaction, or an earlier one, is still open"
    return None


def _of_stream(group: str, committed: int | None, offset: int, owner: str) -> GroupAnswer:
    answer = GroupAnswer(group, "stream", "", "", consumer=owner, committed_offset=committed)
    whose = f"; {owner} reads this partition" if owner else "; nobody reads this partition now"
    if committed is None:
        return answer._replace(state="not read", answer=f"nothing is committed here yet{whose}")
    if committed > offset:
        return answer._replace(state="read", answer=f"read: the group has committed {committed}")
    ahead = offset - committed
    words = f"not committed: {ahead} before it, the group is at {committed}{whose}"
    return answer._replace(state="not read", answer=words, ahead=ahead)


def _last(journey: Journey, steps: set[Step], group: str | None = None) -> Note | None:
    for _, note in reversed(journey.steps):
        if note.step in steps and group in (None, note.group):
            return note
    return None


def read_record(replica: Replica, offset: int) -> DecodedRecord | None:
    piece = replica.read(offset, 1, replica.high_watermark)
    if piece is None:
        return None
    for batch in split(piece.view()):
        if not batch.is_control and batch.base_offset <= offset <= batch.last_offset:
            record = find_record(batch, offset, max_bytes=READ_BYTES_MAX)
            return record if record is not None and record.offset == offset else None
    return None


def _is_aborted(replica: Replica, offset: int) -> bool:
    aborted = replica.producers.open_transactions.aborted_in(offset, offset)
    piece = replica.read(offset, 1, replica.high_watermark) if aborted else None
    producers = {producer for producer, _ in aborted}
    batches = [] if piece is None else list(split(piece.view()))
    return any(batch.is_transactional and batch.producer_id in producers for batch in batches)


def _span(ms: int) -> str:
    """As people say it, in the two largest units."""
    if ms < SECOND_MS:
        return f"{max(ms, 0)} ms"
    parts = []
    for unit, size in (("d", DAY_MS), ("h", HOUR_MS), ("min", MINUTE_MS), ("s", SECOND_MS)):
        count, ms = divmod(ms, size)
        if count:
            parts.append(f"{count} {unit}")
        if len(parts) == 2:
            break
    return " ".join(parts)
