"""Journeys kept: every second or so what was noted goes into a ledger, and from there back into memory after a restart.
It never holds up a publish, and a full disk costs only journeys.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from goqueue.broker.tracing.trace_index import TraceIndex
from goqueue.model.errors import GoQueueError
from goqueue.records.batch import Codec, check_batch, split
from goqueue.records.build import build_batch
from goqueue.records.decode import decode
from goqueue.replica.replica import Replica
from goqueue.runtime.clock import Clock, Timer
from goqueue.telemetry.export import Exporting
from goqueue.telemetry.journeys import Journeys, Note
from goqueue.telemetry.logs import get_logger
from goqueue.telemetry.trace_ids import Spot, TraceParent
from goqueue.telemetry.traces import Chapter

JOURNEYS = "@journeys"
FLUSH_MS = 1000
NOTES_PER_FLUSH = 50_000
"""More are remembered, but not stored."""
NOTES_PER_TURN = 200
"""To see to so many takes less than a millisecond; whoever wants to be served then waits no longer."""
NOTES_PER_PAGE = 10_000
PAGES_RESTORED_MAX = 3600
ONE_BATCH = 1
READ_BYTES = 128 * 1024
"""Of stored pages, packed, that are given away at a time; of a quiet node many are small."""
READ_PAGES_MAX = 1000

events = get_logger("broker")


class Page(msgspec.Struct, array_like=True, frozen=True):
    """What is stored at a time."""

    topic_ids: dict[str, bytes]
    """Of the topics in it: one that is made again under the same name is another."""
    notes: list[Note]
    parents: list[tuple[Spot, TraceParent]] = []


class Kept(NamedTuple):
    """Where journeys go beside memory."""

    replica: Replica | None = None
    exporting: Exporting | None = None


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Page).decode


class Journal:
    def __init__(
        self,
        journeys: Journeys,
        index: TraceIndex,
        clock: Clock,
        topic_id: Callable[[str], bytes | None],
        kept: Kept = Kept(),  # noqa: B008  a tuple
    ) -> None:
        self._journeys = journeys
        self._index = index
        self._clock = clock
        self._topic_id = topic_id
        self._replica = kept.replica
        self._exporting = kept.exporting
        self._seen = 0
        self._notes: deque[Note] = deque()
        """Taken, to be seen to in this turn and the next ones."""
        self._gone: set[str] = set()
        """Topics that were deleted since those were taken: they are not about the next of that name."""
        self._too_many = 0
        """The first of them, that are not stored."""
        self._timer: Timer | None = None
        self._is_over = False
        self._fails = False
        self.stored = 0
        self.not_stored = 0
        """Notes that found no room, on the disk or in a flush."""

    def start(self) -> None:
        """Only where somebody else than memory wants to hear of it."""
        if self._replica is not None or self._exporting is not None:
            self._wait_for_news()

    def _wait_for_news(self) -> None:
        self._journeys.on_news = self._set_timer
        if self._journeys.noted > self._seen:
            self._set_timer()

    def _set_timer(self) -> None:
        self._journeys.on_news = None
        if self._timer is None and not self._is_over:
            self._timer = self._clock.call_after(FLUSH_MS, self._flush)

    def _flush(self) -> None:
        self._timer = None
        if not self._is_over:
            self._take_news()
            self._go_on()

    def _go_on(self) -> None:
        """Some in this turn, and others have theirs before the rest."""
        try:
            self._see_to(NOTES_PER_TURN)
        finally:
            if self._notes:
                self._clock.call_soon(self._go_on)
            elif not self._is_over:
                self._wait_for_news()

    def catch_up(self) -> None:
        """See to all that was noted since the last time."""
        self._take_news()
        while self._notes:
            self._see_to(NOTES_PER_PAGE)

    def _take_news(self) -> None:
        notes = self._journeys.since(self._seen)
        if self._replica is not None:
            self.not_stored += self._journeys.noted - self._seen - len(notes)
        self._seen = self._journeys.noted
        self._notes.extend(notes)
        self._too_many = max(0, len(self._notes) - NOTES_PER_FLUSH)

    def _see_to(self, count: int) -> None:
        left = self._notes
        notes = [left.popleft() for _ in range(min(count, len(left)))]
        if not notes:
            return
        parents = self._index.look(notes)
        skipped = min(self._too_many, len(notes))
        self._too_many -= skipped
        if self._replica is not None:
            self.not_stored += skipped
            self._store(self._replica, notes[skipped:], parents)
        if self._exporting is not None:
            self._exporting.offer(notes)
        if not left:
            self._gone.clear()

    def forget_topic(self, topic: str) -> None:
        """It was deleted."""
        if self._notes:
            self._gone.add(topic)

    def _store(self, replica: Replica, notes: Sequence[Note], parents: list[tuple[Spot, TraceParent]]) -> None:
        now_ms = self._clock.now_ms()
        for first in range(0, len(notes), NOTES_PER_PAGE):
            some = list(notes[first : first + NOTES_PER_PAGE])
            topics = dict.fromkeys(note.topic for note in some)
            ids = {topic: self._topic_id(topic) for topic in topics if topic not in self._gone}
            page = Page({topic: id_ for topic, id_ in ids.items() if id_}, some, [] if first else parents)
            try:
                batch = build_batch([(now_ms, None, _encode(page), [])], codec=Codec.LZ4)
                replica.append(check_batch(memoryview(batch)), now_ms)
            except GoQueueError as error:
                self.not_stored += len(some)
                if not self._fails:
                    events.warning("journeys not stored", reason=str(error))
                self._fails = True
            else:
                self.stored += len(some)
                self._fails = False

    def load(self) -> None:
        """Fill the memory with what was noted last before the restart."""
        if self._replica is None:
            return
        pages: list[Page] = []
        room = self._journeys.capacity
        try:
            for page in _backwards(self._replica):
                pages.append(page)
                room -= len(page.notes)
                if room <= 0:
                    break
        except (GoQueueError, msgspec.MsgspecError) as error:
            events.warning("stored journeys not read", reason=str(error))
        pages.reverse()
        notes: list[Note] = []
        for page in pages:
            same = self._same_topics(page)
            some = [note for note in page.notes if note.topic in same]
            notes += some
            self._index.restore(some, [each for each in page.parents if each[0].topic in same])
        self._journeys.restore(notes)

    def read(self, first: int, end: int) -> Chapter:
        """All that is kept, the oldest first, some at a time: counted in pages, or in notes if none are stored."""
        self.catch_up()
        replica = self._replica
        if replica is None:
            kept, last = self._journeys.kept(), self._journeys.noted
            begin = last - len(kept)
            at = max(first, begin)
            until = max(at, min(end, last, at + NOTES_PER_PAGE))
            return Chapter([], kept[at - begin : until - begin], until, begin, last)
        at, until = max(first, replica.start_offset), min(end, replica.end_offset)
        batches: list[bytes] = []
        size = 0
        while at < until and size < READ_BYTES and len(batches) < READ_PAGES_MAX:
            piece = replica.read(at, ONE_BATCH, until)
            if piece is None:
                at = until
                break
            batches.append(bytes(piece.view()))
            size += len(batches[-1])
            at = piece.next_offset
        return Chapter(batches, [], at, replica.start_offset, replica.end_offset)

    def notes_of(self, chapter: Chapter) -> Iterator[tuple[int, Note]]:
        """Of topics that are still those that they were, each with the number by which chapters are counted. May be
        asked in another thread.
        """
        yield from enumerate(chapter.notes, chapter.next - len(chapter.notes))
        for data in chapter.batches:
            try:
                records = [record for batch in split(memoryview(data)) for record in decode(batch)]
                pages = [(record.offset, _decode(record.value or b"")) for record in records]
            except (GoQueueError, msgspec.MsgspecError) as error:
                events.warning("stored journeys not read", reason=str(error))
                continue
            for number, page in pages:
                same = self._same_topics(page)
                yield from ((number, note) for note in page.notes if note.topic in same)

    def _same_topics(self, page: Page) -> set[str]:
        return {topic for topic, id_ in page.topic_ids.items() if self._topic_id(topic) == id_}

    def stop(self) -> None:
        """The last notes are stored and offered; then nothing more is."""
        if self._is_over:
            return
        self._is_over = True
        self._journeys.on_news = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.catch_up()


def _backwards(replica: Replica) -> Iterator[Page]:
    """The newest first."""
    offset = replica.end_offset - 1
    for _ in range(PAGES_RESTORED_MAX):
        if offset < replica.start_offset:
            return
        piece = replica.read(offset, ONE_BATCH, replica.end_offset)
        if piece is None:
            return
        for batch in split(piece.view()):
            for record in decode(batch):
                yield _decode(record.value or b"")
        offset = piece.first_offset - 1
