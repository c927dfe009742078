"""Dead letters looked at, sent back to work, or thrown away.

What was redriven or purged is settled for a group of our own, so that it is not listed and not redriven again; the
dead letter itself stays in its topic until retention takes it, and every other group still reads it.
"""

from collections.abc import Callable, Sequence
from itertools import groupby

from goqueue.broker.dead_letters.letters import InRanges, is_from, number_in, topic_in
from goqueue.broker.dead_letters.way_back import Back
from goqueue.broker.dead_letters.writing import dead_letters_of
from goqueue.broker.publishing.send import Sender
from goqueue.broker.queues.queues import Queues
from goqueue.broker.reading.scan import scan
from goqueue.broker.topics.topics import Topics
from goqueue.broker.tracing.noting import runs_of
from goqueue.machines.deliveries.commands import NO_LEASE, How, Place, Settle, Settlement
from goqueue.model.again import Again
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.ranges import Range, merge
from goqueue.model.refusal import Refused
from goqueue.model.starts import EARLIEST
from goqueue.model.tenancy import tenant_said
from goqueue.records import dead_letters
from goqueue.records.dead_letters import NAME_CHARS_MAX, dead_letter_topic
from goqueue.records.decode import DecodedRecord
from goqueue.records.filters import RecordFilter
from goqueue.records.messages import NewMessage, Sent
from goqueue.records.native import Headers
from goqueue.records.redrives import GROUP, ORIGIN, REDRIVES, RedriveJob, RedriveReport, RedriveRequest
from goqueue.runtime.clock import Clock
from goqueue.telemetry.journeys import Journeys, Step

RECORDS_PER_TURN = 100
JOBS_KEPT = 1000
SECOND_MS = 1000
ERRORS_MAX = 20
"""Kinds of them, in one report."""
WAY_OUT = "say where to send it (to)"


class DeadLetters:
    def __init__(self, queues: Queues, topics: Topics, sender: Sender, clock: Clock, journeys: Journeys) -> None:
        self._queues = queues
        self._topics = topics
        self.clock = clock
        self._jobs: dict[str, RedriveJob] = {}
        """The last one of each topic. Of two at once both would send the same letters."""
        self.journeys = journeys
        self.way_back: Callable[[], Back] = lambda: sender.send
        """By which one redrive, or one move, sends what it sends. In a cluster: see `WayBack`."""

    def look(
        self,
        topic: str,
        take: Callable[[int, list[DecodedRecord]], bool],
        on_end: Callable[[GoQueueError | None], None],
        filter: RecordFilter = RecordFilter(),  # noqa: B008  frozen, and the word for it
    ) -> None:
        """Give the dead letters of `topic` that are still to be dealt with to `take`, with their partition."""
        partitions = iter(self._partitions(topic))

        def next_partition(again: Again, error: GoQueueError | None = None) -> None:
            partition = next(partitions, None)
            if error is not None or partition is None:
                on_end(error)
                return
            self.scan(topic, partition, lambda records: take(partition, _chosen(records, filter)), again)

        Again(next_partition)()

    def name_of(self, topic: str) -> str:
        return dead_letters_of(self._topics, topic)

    def _partitions(self, topic: str) -> list[int]:
        """Without dead letters there is no topic for them, and nothing to do."""
        found = self._topics.image.topics.get(self.name_of(topic))
        return [] if found is None else self._topics.led(found.name, range(found.partitions))

    def scan(
        self,
        topic: str,
        partition: int,
        on_records: Callable[[list[DecodedRecord]], bool],
        on_end: Callable[[GoQueueError | None], None],
        start_offset: int = 0,
    ) -> None:
        place = Place(GROUP, self.name_of(topic), partition)
        try:
            replica = self._topics.replica(place.topic, partition)
        except GoQueueError as error:
            on_end(error)
            return
        settled = InRanges(self._settled(place))
        scan(
            replica,
            (start_offset, replica.last_stable_offset),
            self.clock,
            lambda records: on_records(
                [
                    each
                    for each in records
                    if each.offset not in settled and self._is_of(topic, place.topic, dict(each.headers))
                ]
            ),
            on_end,
        )

    def _is_of(self, topic: str, kept_in: str, about: dict[str, bytes | None]) -> bool:
        """Among the dead letters of `topic`: those that say so, and in a topic made for them also what nobody else
        keeps there, so that it is seen."""
        if is_from(topic, about):
            return True
        if kept_in != dead_letter_topic(topic):
            return False
        other = topic_in(about)
        return other not in self._topics.image.topics or self.name_of(other) != kept_in

    def origin(self, kept_in: str, letter: DecodedRecord) -> str:
        """The topic that a dead letter in topic `kept_in` came from. Anybody may write there, so its headers are
        believed only where they fit what the broker knows: that topic keeps its dead letters here, and has had a record
        at the place that is named. Refused: else."""
        about = dict(letter.headers)
        topic = topic_in(about)
        if not topic:
            raise Refused(Code.INVALID_REQUEST, f"a message in {kept_in!r} does not say where it came from; {WAY_OUT}")
        # Of topics of other tenants nobody learns whether they are there.
        if topic not in self._topics.image.topics or tenant_said(topic) != tenant_said(kept_in):
            raise Refused(
                Code.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic[:NAME_CHARS_MAX]!r} any more; {WAY_OUT}"
            )
        if self.name_of(topic) != kept_in:
            text = f"a message in {kept_in!r} says that it came from {topic!r}, whose dead letters are not kept there"
            raise Refused(Code.INVALID_REQUEST, f"{text}; {WAY_OUT}")
        partition = number_in(about, dead_letters.PARTITION)
        if partition < self._topics.image.topics[topic].partitions and not self._topics.led(topic, (partition,)):
            return topic  # only its leader knows its end
        end = self._topics.end_offset(topic, partition)
        if end is None or number_in(about, dead_letters.OFFSET) >= end:
            text = f"a message in {kept_in!r} says that it came from a place that {topic!r} does not have"
            raise Refused(Code.INVALID_REQUEST, f"{text}; {WAY_OUT}")
        return topic

    def _settled(self, place: Place) -> list[Range]:
        state = self._queues.peek_at(place).state_of(GROUP)  # also where no place is open
        found = [each for each in state.places if (each.topic, each.partition) == place[1:]]
        return merge([(0, each.start_offset - 1) for each in found] + [one for each in found for one in each.settled])

    # -- sending back

    def redrive(
        self, request: RedriveRequest, on_done: Callable[[RedriveReport | GoQueueError], None]
    ) -> RedriveJob | None:
        """In the order in which they died, partition by partition, so that the order of every key is kept."""
        job, back = RedriveJob(request, self.clock.now_ms()), self.way_back()
        partitions = iter(self._partitions(request.topic))
        if not request.is_dry_run:
            last = self._jobs.pop(request.topic, None)
            if last is not None and last.ended_ms is None:
                self._jobs[request.topic] = last
                on_done(Refused(Code.INVALID_REQUEST, f"dead letters of {request.topic!r} are being sent back already"))
                return None
            self._remember(job)

        def next_partition(again: Again, error: GoQueueError | None = None) -> None:
            partition = None if job.is_stopped else next(partitions, None)
            if error is not None or partition is None:
                job.error, job.ended_ms = error, self.clock.now_ms()
                on_done(error or job.report)
            else:
                _Redrive(self, job, back, partition, again).go_on()

        Again(next_partition)()
        return job

    def last_redrive(self, topic: str) -> RedriveJob | None:
        """Under way or over; None: there was none since the start, or that is long ago."""
        return self._jobs.get(topic)

    def _remember(self, job: RedriveJob) -> None:
        ended = [topic for topic, each in self._jobs.items() if each.ended_ms is not None]
        for topic in ended[: max(0, len(self._jobs) - JOBS_KEPT + 1)]:
            del self._jobs[topic]
        self._jobs[job.request.topic] = job

    def send_back(
        self, back: Back, letters: Sequence[tuple[str, DecodedRecord]], on_sent: Callable[[list[Sent]], None]
    ) -> None:
        """Each to the topic that it comes with; those that follow each other to the same one together."""
        sent: list[Sent] = []
        runs = [(topic, [each for _, each in run]) for topic, run in groupby(letters, lambda letter: letter[0])]

        def next_run(again: Again) -> None:
            if not runs:
                on_sent(sent)
                return

            def done(some: list[Sent]) -> None:
                sent.extend(some)
                self.clock.call_soon(again)

            topic, run = runs.pop(0)
            back(topic, [self.message_back(topic, each) for each in run], done)

        Again(next_run)()

    def message_back(self, topic: str, letter: DecodedRecord) -> NewMessage:
        """A dead letter as it is sent to `topic`, to the partition that it came from if it came from there."""
        about = dict(letter.headers)
        headers: Headers = [
            each for each in letter.headers if not each[0].startswith(dead_letters.PREFIX) and each[0] != REDRIVES
        ]
        headers.append((REDRIVES, b"%d" % (number_in(about, REDRIVES) + 1)))
        if ORIGIN not in about:
            origin = (
                about.get(name) or b"" for name in (dead_letters.TOPIC, dead_letters.PARTITION, dead_letters.OFFSET)
            )
            headers.append((ORIGIN, b"/".join(origin)))
        known = self._topics.image.topics.get(topic)
        partition: int | None = number_in(about, dead_letters.PARTITION)
        if known is None or partition is None or partition >= known.partitions or not is_from(topic, about):
            partition = None
        return NewMessage(letter.value, letter.key, headers, partition, may_be_compressed=True)

    def discard(self, topic: str, partition: int, offset: int, on_done: Callable[[GoQueueError | None], None]) -> None:
        """A dead letter, in the topic that keeps it: nobody sends it back any more."""
        self.settle(Place(GROUP, topic, partition), [offset], on_done)

    def settle(self, place: Place, offsets: Sequence[int], on_done: Callable[[GoQueueError | None], None]) -> None:
        settlements = tuple(
            Settlement(first, last, How.ACK, lease=NO_LEASE) for first, last in merge((each, each) for each in offsets)
        )

        def settle(error: GoQueueError | None = None) -> None:
            if error is not None:
                on_done(error)
                return
            if self._topics.led(place.topic, (place.partition,)):  # else its leader does
                self._queues.observe(place)
            self._queues.submit(
                Settle(place, settlements),
                lambda reply: on_done(reply if isinstance(reply, GoQueueError) else None),
            )

        if self._queues.is_open(place):
            settle()
        else:
            self._queues.open(place, EARLIEST, settle)

    # -- throwing away

    def purge(self, topic: str, on_done: Callable[[int | GoQueueError], None]) -> None:
        """All dead letters of `topic`, for good and for everybody: their space is given back."""
        purged = 0
        name = self.name_of(topic)
        if name != dead_letter_topic(topic):
            on_done(Refused(Code.INVALID_REQUEST, f"dead letters of {topic!r} are in topic {name!r}: empty that one"))
            return
        try:
            for partition in self._partitions(topic):
                replica = self._topics.replica(name, partition)
                purged += replica.high_watermark - replica.start_offset
                replica.delete_before(replica.high_watermark)
        except GoQueueError as error:
            on_done(error)
            return
        on_done(purged)


class _Redrive:
    """One partition of dead letters, some records at a time, each time sent, settled, and then the next."""

    def __init__(
        self,
        letters: DeadLetters,
        job: RedriveJob,
        back: Back,
        partition: int,
        on_done: Callable[[GoQueueError | None], None],
    ) -> None:
        self._letters = letters
        self._job = job
        self._back = back
        self._request = job.request
        self._place = Place(GROUP, letters.name_of(job.request.topic), partition)
        self._report = job.report
        self._on_done = on_done
        self._offset = 0
        self._read: list[DecodedRecord] = []
        """What was read last and has not had its turn: a piece of the log is opened once, not for every turn."""

    def go_on(self) -> None:
        if self._job.is_stopped:
            self._on_done(None)
            return
        if self._read:
            self._take_turn()
            return

        def take(records: list[DecodedRecord]) -> bool:
            self._read = records
            return not records

        def read(error: GoQueueError | None) -> None:
            if error is not None or not self._read:
                self._on_done(error)
            else:
                self._offset = self._read[-1].offset + 1
                self._take_turn()

        self._letters.scan(self._request.topic, self._place.partition, take, read, self._offset)

    def _take_turn(self) -> None:
        rate = self._request.records_per_second
        most = min(RECORDS_PER_TURN, rate) if rate else RECORDS_PER_TURN
        turn, self._read = self._read[:most], self._read[most:]
        self._send(self._believed(self._choose(turn)))

    def _choose(self, records: list[DecodedRecord]) -> list[DecodedRecord]:
        chosen = _chosen(records, self._request.filter)
        if self._request.places is not None:
            wanted = self._request.places.get(self._place.partition, frozenset())
            chosen = [each for each in chosen if each.offset in wanted]
        fit = [each for each in chosen if number_in(dict(each.headers), REDRIVES) < self._request.redrives_max]
        self._report.filtered_out += len(records) - len(chosen)
        self._report.looping += len(chosen) - len(fit)
        return fit

    def _believed(self, records: list[DecodedRecord]) -> list[DecodedRecord]:
        """Without `to`, all go back to the topic that was asked for, or nowhere: no header chooses another."""
        if self._request.to is not None:
            return records
        believed = []
        for record in records:
            try:
                self._letters.origin(self._place.topic, record)
                believed.append(record)
            except Refused as refusal:
                self._report.failed += 1
                self._tell(refusal)
        return believed

    def _tell(self, error: GoQueueError) -> None:
        errors = self._report.errors
        if str(error) not in errors and len(errors) < ERRORS_MAX:
            errors.append(str(error))

    def _send(self, records: list[DecodedRecord]) -> None:
        if self._request.is_dry_run or not records:
            self._report.redriven += len(records)
            self._letters.clock.call_soon(self.go_on)
            return
        to = self._request.to or self._request.topic
        self._letters.send_back(self._back, [(to, each) for each in records], lambda sent: self._sent(records, sent))

    def _sent(self, records: list[DecodedRecord], sent: list[Sent]) -> None:
        done = [record.offset for record, one in zip(records, sent, strict=True) if one.error is None]
        self._report.redriven += len(done)
        self._report.failed += len(records) - len(done)
        self._note(records, sent)
        for one in sent:
            if one.error is not None:
                self._tell(one.error)
        if done:
            self._letters.settle(self._place, done, lambda error: self._settled(len(records), error))
        else:
            self._settled(len(records), None)

    def _note(self, records: Sequence[DecodedRecord], sent: Sequence[Sent]) -> None:
        """`detail` is where the first of a range is now."""
        _, topic, partition = self._place
        now_ms = self._letters.clock.now_ms()
        to = self._request.to or self._request.topic
        for number, same in groupby(zip(records, sent, strict=True), lambda one: one[1].partition):
            for first, last, offset in runs_of((record.offset, one.offset) for record, one in same if not one.error):
                detail = f"{to}/{number}/{offset}"
                self._letters.journeys.note(now_ms, Step.REDRIVEN, topic, partition, first, last, detail=detail)

    def _settled(self, records: int, error: GoQueueError | None) -> None:
        if error is not None:
            self._on_done(error)
            return
        rate = self._request.records_per_second
        if rate:
            self._letters.clock.call_after(records * SECOND_MS / rate, self.go_on)
        else:
            self._letters.clock.call_soon(self.go_on)


def _chosen(records: list[DecodedRecord], chooses: RecordFilter) -> list[DecodedRecord]:
    return records if chooses.is_empty else [each for each in records if chooses.matches(each)]
