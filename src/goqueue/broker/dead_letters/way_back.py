"""In a cluster dead letters go back to partitions that other nodes lead, whose answer may be lost, or whose leader may
change meanwhile. Each redrive, and each move, is an idempotent producer: it sends the same batch again until it knows,
and the leader recognises the repetition. So only the end of the node that sends can make two of one.
"""

from collections import deque
from collections.abc import Sequence
from typing import Protocol

from goqueue.broker.dead_letters.identities import LOST_TRACK, SEQUENCE_MASK, Identity
from goqueue.broker.publishing.send import Sender
from goqueue.broker.publishing.together import OnSent
from goqueue.broker.remote.appends import RemoteAppends
from goqueue.broker.topics.topics import Topics
from goqueue.broker.transactions.producer_ids import ProducerIds
from goqueue.model.errors import GoQueueError, Indeterminate, NotReached
from goqueue.model.refusal import NotLeader, Refused
from goqueue.records.build import build_fitting
from goqueue.records.messages import NewMessage, Sent
from goqueue.runtime.clock import Clock

AGAIN_MS = 1000
TRIES = 30
"""Of one batch. Then its letters stay where they are, and are sent with the next redrive, perhaps a second time."""

Target = tuple[str, int]
"""A topic and one of its partitions."""


class Back(Protocol):
    """What letters are sent back with: as `Sender.send`."""

    def __call__(self, topic: str, messages: Sequence[NewMessage], on_sent: OnSent, /) -> None: ...


class WayBack:
    """Of one redrive or move. Invariant: one `send` at a time, so that each target has one batch under way."""

    def __init__(self, sender: Sender, appends: RemoteAppends, ids: ProducerIds, topics: Topics, clock: Clock) -> None:
        self.sender = sender
        self.appends = appends
        self.topics = topics
        self.clock = clock
        self._ids = ids
        self._known: dict[Target, Identity] = {}

    def send(self, topic: str, messages: Sequence[NewMessage], on_sent: OnSent) -> None:
        _Sending(self, topic, messages, on_sent).go_on()

    def find(self, target: Target, sending: "_Sending") -> None:
        """The identity of the next batch there. None: there is no id to be had now."""
        known = self._known.get(target)
        if known is not None:
            sending.identified(known)
            return

        def taken(producer_id: int | GoQueueError) -> None:
            if isinstance(producer_id, GoQueueError):
                sending.identified(None)
            else:
                self._known[target] = Identity(producer_id, 0, 0)
                sending.identified(self._known[target])

        self._ids.take(taken)

    def stored(self, target: Target, records: int) -> None:
        known = self._known[target]
        self._known[target] = known._replace(base_sequence=(known.base_sequence + records) & SEQUENCE_MASK)

    def forget(self, target: Target) -> None:
        """Nobody knows what became of its last batch, so that the next one must not be taken for it."""
        self._known.pop(target, None)


class _Sending:
    """The messages of one `send`, a batch after the other, each to one partition."""

    def __init__(self, way: WayBack, topic: str, messages: Sequence[NewMessage], on_sent: OnSent) -> None:
        self._way = way
        self._topic = topic
        self._messages = messages
        self._on_sent = on_sent
        self._sent = [Sent(-1, -1)] * len(messages)
        self._parts: deque[tuple[int, list[int]]] = deque()
        """Partitions, each with the places of its messages."""
        self._data = b""
        self._tries = 0
        self._is_unsure = False
        """The batch at hand may have been stored."""
        by_partition: dict[int, list[int]] = {}
        for place, message in enumerate(messages):
            try:
                by_partition.setdefault(way.sender.choose(topic, message), []).append(place)
            except GoQueueError as error:
                way.sender.refused(topic, error)
                self._sent[place] = Sent(-1, -1, error.kept())
        self._parts.extend(by_partition.items())

    @property
    def _target(self) -> Target:
        return self._topic, self._parts[0][0]

    def go_on(self) -> None:
        self._tries, self._is_unsure = 0, False
        if self._parts:
            self._way.find(self._target, self)
        else:
            self._on_sent(self._sent)

    def identified(self, identity: Identity | None) -> None:
        partition, places = self._parts[0]
        if identity is None or self._topic not in self._way.topics.image.topics:
            self._send_plainly()
            return
        bytes_max, now_ms = self._way.appends.bytes_max(self._topic), self._way.clock.now_ms()
        messages = [self._messages[each] for each in places]
        records = [(now_ms, each.key, each.value, each.all_headers()) for each in messages]
        data = build_fitting(records, bytes_max, **identity._asdict())
        if len(data) <= bytes_max:
            self._data = bytes(data)
            self._append()
        elif len(places) == 1:
            self._send_plainly()
        else:
            half = len(places) // 2
            self._parts.popleft()
            self._parts.extendleft(((partition, places[half:]), (partition, places[:half])))
            self._way.find(self._target, self)

    def _append(self) -> None:
        self._tries += 1
        self._way.appends.append_anywhere(*self._target, self._data, self._answered)

    def _answered(self, base_offset: int | GoQueueError) -> None:
        if isinstance(base_offset, GoQueueError):
            self._failed(base_offset)
            return
        partition, places = self._parts.popleft()
        self._way.stored((self._topic, partition), len(places))
        durability = self._way.topics.durability(self._topic, partition)
        for number, place in enumerate(places):
            self._sent[place] = Sent(partition, base_offset + number, None, durability)
        self._way.clock.call_soon(self.go_on)

    def _failed(self, error: GoQueueError) -> None:
        has_lost_track = isinstance(error, Refused) and error.code in LOST_TRACK
        if has_lost_track:  # what was stored of it is lost, and nothing of this batch is there
            self._way.forget(self._target)
            self._is_unsure = False
        self._is_unsure = self._is_unsure or isinstance(error, Indeterminate)
        is_passing = self._is_unsure or isinstance(error, NotReached | NotLeader)
        if has_lost_track and self._tries < TRIES:
            self._way.clock.call_after(AGAIN_MS, lambda: self._way.find(self._target, self))
        elif is_passing and self._tries < TRIES:
            self._way.clock.call_after(AGAIN_MS, self._append)
        elif is_passing or has_lost_track:
            self._give_up(error)
        else:
            self._send_plainly()

    def _give_up(self, error: GoQueueError) -> None:
        self._way.forget(self._target)
        partition, places = self._parts.popleft()
        for place in places:
            self._sent[place] = Sent(partition, -1, error.kept())
        self.go_on()

    def _send_plainly(self) -> None:
        """Nothing of the batch was stored: as one of it may not be, each is tried by itself, as any message is."""
        partition, places = self._parts.popleft()

        def sent(answers: list[Sent]) -> None:
            for place, answer in zip(places, answers, strict=True):
                self._sent[place] = answer
            self._way.clock.call_soon(self.go_on)

        messages = [self._messages[each]._replace(partition=partition) for each in places]
        self._way.sender.send(self._topic, messages, sent)
