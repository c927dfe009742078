"""Stream reads: whole batches as bytes, from many partitions at once."""

from collections.abc import Sequence
from typing import Final

from goqueue.broker.cluster_watch import ClusterWatch
from goqueue.broker.reading.fetch_session import Entry, FetchSession, Names, OnAnswer
from goqueue.broker.reading.takeovers import Takeovers
from goqueue.broker.reading.wants import NO_EPOCH, Got, Limits, Want
from goqueue.broker.topics.topics import Topics
from goqueue.model.codes import Code
from goqueue.model.error_codes import code_of
from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import Refused
from goqueue.replica.replica import Replica
from goqueue.runtime.clock import Clock
from goqueue.telemetry.journeys import Journeys, Step
from goqueue.telemetry.meters import Meters

_NONE: Final = Code.NONE  # looking up enum members costs
_FETCHED: Final = Step.FETCHED

Told = Sequence[tuple[Entry, Got]]


class Fetcher:
    """Who asks it itself may read everything, by the names under which it is kept: others are given `Names`."""

    rights: object = None

    def __init__(self, topics: Topics, clock: Clock, journeys: Journeys, meters: Meters, cluster: ClusterWatch) -> None:
        self._topics = topics
        self._clock = clock
        self._journeys = journeys
        self._meters = meters
        self._cluster = cluster
        self.takeovers = Takeovers(clock, cluster.node_id)
        topics.on_change.append(self.takeovers.topics_changed)
        self._nobody = self.session()
        """Whose entries nobody watches."""

    def session(self, names: Names | None = None) -> FetchSession:
        return FetchSession(self, names or self, self._clock)

    def fetch(
        self, wants: Sequence[Want], limits: Limits, on_answer: OnAnswer, names: Names | None = None
    ) -> FetchSession | None:
        """Outside of any session. None: it is answered. Else it will be, unless what is returned is closed."""
        if len(wants) == 1 and self._fetch_now(wants[0], limits, on_answer, names or self):
            return None
        session = self.session(names)
        session.is_once = True
        session.change(wants)
        session.fetch(names or self, limits, on_answer)
        return session

    def _fetch_now(self, want: Want, limits: Limits, on_answer: OnAnswer, names: Names) -> bool:
        """Most consumers read one partition with a request, and most find something there: such a fetch has nothing to
        keep and nothing to divide. False: it has to wait."""
        started_s = self._clock.monotonic_s()
        entry = Entry(self._nobody, want)
        got = self.read(entry, names, limits, limits.max_bytes)
        missing = min(limits.min_bytes, max(limits.max_bytes, 1)) - got.size
        if missing > 0 and got.code is _NONE and limits.max_wait_ms > 0:
            return False
        told = ((entry, got),)
        self.note(told, limits)
        on_answer([(want, got)])
        self.measure(told, started_s)
        return True

    def kept_name(self, want: Want) -> str:
        if not want.topic_id:
            return want.topic
        topic = self._topics.image.by_id(want.topic_id)
        if topic is None:
            raise Refused(Code.UNKNOWN_TOPIC_ID)
        return topic.name

    def is_cut_off(self) -> bool:
        """Others may lead by now what this node thinks it leads, and nothing will move here to tell of it."""
        return not self._cluster.session_holds()

    def note(self, told: Told, limits: Limits) -> None:
        """That this is sent."""
        now_ms = 0
        for entry, got in told:
            piece, want = got.piece, entry.want
            if piece is not None and piece.next_offset > want.offset:
                now_ms = now_ms or self._clock.now_ms()
                first, last = max(want.offset, piece.first_offset), piece.next_offset - 1
                self._journeys.note(now_ms, _FETCHED, entry.topic, want.partition, first, last, "", limits.consumer)

    def measure(self, told: Told, started_s: float) -> None:
        """That it was sent: once for each topic of which there was something."""
        sizes: dict[str, int] = {}
        for entry, got in told:
            if got.size:
                sizes[entry.topic] = sizes.get(entry.topic, 0) + got.size
        if sizes:
            seconds = self._clock.monotonic_s() - started_s
            for topic, size in sizes.items():
                self._meters.fetched(topic, seconds, size)

    def read(self, entry: Entry, names: Names, limits: Limits, room: int) -> Got:
        """At least one batch: a reader must get past a batch larger than its limits."""
        want = entry.want
        try:
            entry.topic = topic = names.kept_name(want)
            entry.replica = replica = self._topics.replica(topic, want.partition)
            replica.check_fresh()
            if want.leader_epoch != NO_EPOCH:
                check_epoch(replica, want.leader_epoch)
            offset, start, high = want.offset, replica.start_offset, replica.high_watermark
            if not start <= offset <= replica.end_offset:
                raise Refused(Code.OFFSET_OUT_OF_RANGE)
            transactions = replica.producers.open_transactions
            stable = transactions.last_stable_offset(high)
            limit = stable if limits.is_read_committed else high
            piece = replica.read(offset, min(want.max_bytes, room), limit) if room > 0 and offset < limit else None
        except GoQueueError as error:
            entry.replica = None
            return Got(code_of(error))
        if piece is None:
            return Got(_NONE, high, stable, start)
        aborted: Sequence[tuple[int, int]] = ()
        if limits.is_read_committed:
            aborted = transactions.aborted_in(piece.first_offset, piece.next_offset - 1)
        return Got(_NONE, high, stable, start, piece, piece.length, aborted)


def check_epoch(replica: Replica, leader_epoch: int) -> None:
    if leader_epoch == NO_EPOCH:
        return
    if leader_epoch < replica.leader_epoch:
        raise Refused(Code.FENCED_LEADER_EPOCH)
    if leader_epoch > replica.leader_epoch:
        raise Refused(Code.UNKNOWN_LEADER_EPOCH)
