"""Partitions that one client reads, and which of them have news for it. A session of a Kafka client (KIP-227) names
them once, and each answer looks at those with news alone: a thousand partitions in which nothing happens cost nothing.
A fetch outside of any session is a session that ends with its answer.

A fetch that waits has no task: an entry in each partition that it watches, and one timer.
"""

from collections.abc import Callable, Container, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from goqueue.broker.reading.wants import NO_LIMITS, Got, Limits, Want
from goqueue.model.codes import Code
from goqueue.replica.replica import Replica
from goqueue.runtime.clock import Clock, Timer

if TYPE_CHECKING:
    from goqueue.broker.reading.fetch import Fetcher

UNTOLD = -1
_NONE: Final = Code.NONE  # looking up enum members costs

Key: TypeAlias = tuple[str | bytes, int]
"""Name or id of a topic, and a partition."""
Answer: TypeAlias = list[tuple[Want, Got]]
OnAnswer: TypeAlias = Callable[[Answer], None]


class Names(Protocol):
    """Whose session it is, and what may be read there."""

    @property
    def rights(self) -> object:
        """Another object whenever they were changed."""

    def kept_name(self, want: Want) -> str:
        """The name under which its topic is kept. Refused: it may not be read, or its id is that of none."""


class Entry:
    """One partition of a session, and what the client was told of it."""

    __slots__ = ("replica", "session", "start", "topic", "want", "watched", "watermark")

    def __init__(self, session: "FetchSession", want: Want) -> None:
        self.session = session
        self.want = want
        self.topic = ""
        """As it is kept."""
        self.replica: Replica | None = None
        """As it was found last. None: it was refused."""
        self.watched: Replica | None = None
        self.watermark = self.start = UNTOLD

    def watch(self) -> None:
        replica = self.replica
        if self.watched is not replica:
            self.unwatch()
            if replica is not None:
                self.watched = replica
                replica.watch(self, self._moved)

    def unwatch(self) -> None:
        if self.watched is not None:
            self.watched.unwatch(self)
            self.watched = None

    def _moved(self) -> None:
        """Once: until it is looked at, no more need be heard of it."""
        self.unwatch()
        self.session.has_news(self)

    def is_stale(self, got: Got) -> bool:
        """What was found is not what would be found now; that more has come is no reason to look again."""
        replica = self.replica
        return replica is not None and (replica.failure is not None or replica.start_offset != got.start_offset)

    def must_tell(self, got: Got) -> bool:
        """As Kafka has it: records, a refusal, or another high watermark or start than the client knows."""
        return (
            got.size > 0
            or got.code is not _NONE
            or got.high_watermark != self.watermark
            or got.start_offset != self.start
        )

    def told(self, got: Got) -> None:
        """After a refusal the client is told again how far it is, whatever it knew."""
        self.watermark = got.high_watermark if got.code is _NONE else UNTOLD
        self.start = got.start_offset


class FetchSession:
    """Invariant: an entry that is not in `_news` is watched, and its client knows all that there is. While a fetch
    waits, all entries that were looked at are watched."""

    __slots__ = (
        "_clock",
        "_fetcher",
        "_found",
        "_has_refusal",
        "_is_full",
        "_is_looking",
        "_limits",
        "_missing",
        "_moved",
        "_names",
        "_news",
        "_on_answer",
        "_rights",
        "_room",
        "_sized",
        "_timer",
        "entries",
        "is_once",
    )

    def __init__(self, fetcher: "Fetcher", names: Names, clock: Clock) -> None:
        self._fetcher = fetcher
        self._names = names
        self._rights = names.rights
        self._clock = clock
        self.is_once = False
        """It ends with its next answer."""
        self._is_full = True
        """The next answer has all partitions, whether or not there is news of them."""
        self._is_looking = False
        self.entries: dict[Key, Entry] = {}
        self._news: dict[Entry, None] = {}
        """In the order in which they have their turn: one that has given records goes to the end."""
        self._limits = NO_LIMITS
        self._on_answer: OnAnswer | None = None
        """Of the fetch that is being answered, or waits."""
        self._timer: Timer | None = None
        self._found: dict[Entry, Got] = {}
        """For that fetch."""
        self._moved: dict[Entry, None] = {}
        """What has moved while it waits."""
        self._room = self._missing = self._sized = 0
        self._has_refusal = False

    # -- what the client says

    def change(self, named: Iterable[Want], forgotten: Iterable[Key] = ()) -> None:
        self.hurry()
        entries, news = self.entries, self._news
        for want in named:
            key = want.topic_id or want.topic, want.partition
            entry = entries.get(key)
            if entry is None:
                entry = entries[key] = Entry(self, want)
            else:
                entry.want = want
            news[entry] = None
        for key in forgotten:
            entry = entries.pop(key, None)
            if entry is not None:
                entry.unwatch()
                news.pop(entry, None)

    def fetch(self, names: Names, limits: Limits, on_answer: OnAnswer) -> None:
        """Answer at once, or later: what of `limits.min_bytes` is missing then may come meanwhile."""
        self.hurry()
        is_other = names.rights is not self._rights or limits.is_read_committed is not self._limits.is_read_committed
        if is_other or self._fetcher.is_cut_off():
            self._doubt_all()
        self._names, self._rights = names, names.rights
        self._limits, self._on_answer = limits, on_answer
        started_s = self._clock.monotonic_s()
        self._look_anew()
        if limits.max_wait_ms <= 0 or self._is_enough or not self.entries:
            self._answer(started_s)
        else:
            wait_ms = self._fetcher.takeovers.begin_wait(self, limits.max_wait_ms)
            self._timer = self._clock.call_after(wait_ms, self.hurry)
            for entry in self._found:
                entry.watch()

    def hurry(self) -> None:
        """Answer the fetch that waits, if there is one, with what there is."""
        if self._on_answer is None:
            return
        started_s = self._clock.monotonic_s()
        if self._names.rights is not self._rights:
            self._rights = self._names.rights
            self._doubt_all()
            self._look_anew()
        else:
            moved = self._moved
            self._look([*moved, *(one for one, got in self._found.items() if one not in moved and one.is_stale(got))])
        self._answer(started_s)

    def reads(self, topics: Container[str]) -> bool:
        """Something of one of them."""
        return any(entry.topic in topics for entry in self.entries.values())

    def close(self) -> None:
        """A fetch that waits is not answered."""
        self._end_wait()
        for entry in self.entries.values():
            entry.unwatch()
        self.entries.clear()
        self._news.clear()
        self._found = {}

    # -- what has changed here

    def has_news(self, entry: Entry) -> None:
        """Others may have moved in the same turn: they are looked at together."""
        self._news[entry] = None
        if self._on_answer is None:
            return
        self._moved[entry] = None
        if len(self.entries) == 1:
            self._look_again()
        elif not self._is_looking:
            self._is_looking = True
            self._clock.call_soon(self._look_again)

    def _look_again(self) -> None:
        self._is_looking = False
        if self._on_answer is None or not self._moved:
            return
        moved, self._moved = self._moved, {}
        self._look(moved)
        if self._is_enough:
            self.hurry()
        else:
            for entry in moved:
                entry.watch()

    # -- looking

    @property
    def _is_enough(self) -> bool:
        return self._has_refusal or self._missing <= 0

    def _doubt_all(self) -> None:
        """What was found may not be so any more, though no partition has moved."""
        self._news.update(dict.fromkeys(self.entries.values()))

    def _look_anew(self) -> None:
        limits = self._limits
        self._found = {}
        self._room, self._missing = limits.max_bytes, min(limits.min_bytes, max(limits.max_bytes, 1))
        self._sized, self._has_refusal = 0, False
        self._look(list(self._news))

    def _look(self, entries: Iterable[Entry]) -> None:
        """When no more has room, the others have their turn with the next fetch; unless each must be named."""
        found, limits, is_committed = self._found, self._limits, self._limits.is_read_committed
        for entry in entries:
            if self._room <= 0 and self._sized and not self._is_full:
                break
            before = found.get(entry)
            if before is not None:
                self._missing += before.size + before.withheld
                if before.size:
                    self._room += before.size
                    self._sized -= 1
            got = self._fetcher.read(entry, self._names, limits, self._room)
            if got.size:
                got = self._admit(entry, got)
            if got.code is not _NONE:
                self._has_refusal = True
            elif not got.size and entry.want.offset >= (got.last_stable_offset if is_committed else got.high_watermark):
                self._news.pop(entry, None)
                if not self.is_once:
                    entry.watch()
            found[entry] = got

    def _admit(self, entry: Entry, got: Got) -> Got:
        """Only the first batch of all may be larger than asked for."""
        size = got.size
        if self._sized and size > self._room:
            self._room = self._missing = 0
            return got.without_records()
        if self._sized and size > entry.want.max_bytes:
            withheld = max(entry.want.max_bytes, 0)
            self._missing -= withheld
            return got.without_records(withheld)
        self._sized += 1
        self._room -= size
        self._missing -= size
        if self._room <= 0:
            self._missing = 0
        return got

    # -- answering

    def _answer(self, started_s: float) -> None:
        found, on_answer = self._found, self._on_answer
        assert on_answer is not None
        self._end_wait()
        self._found = {}
        told = list(found.items()) if self._is_full else self._news_in(found)
        if self.is_once:
            self.close()
        else:
            self._is_full = False
            self._tell(told)
        self._fetcher.note(told, self._limits)
        on_answer([(entry.want, got) for entry, got in told])
        self._fetcher.measure(told, started_s)

    def _news_in(self, found: dict[Entry, Got]) -> Sequence[tuple[Entry, Got]]:
        return [(entry, got) for entry, got in found.items() if entry.must_tell(got)]

    def _tell(self, told: Iterable[tuple[Entry, Got]]) -> None:
        news = self._news
        for entry, got in told:
            entry.told(got)
            if got.size and entry in news:
                del news[entry]
                news[entry] = None

    def _end_wait(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._fetcher.takeovers.end_wait(self)
        self._on_answer = None
        self._moved.clear()
