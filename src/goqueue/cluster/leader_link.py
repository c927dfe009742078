"""The way of records from a leader to the copies here: one loop of fetches for all copies that follow the same node,
and a second one, with a throttle, for those that are far behind, so that these delay nobody's acknowledgements.

A fetch is sent when there is something to tell: a copy is on the disk up to its end, or is new. One more waits at the
leader for news, half a second at most. So two are under way at most, and their answers come in their order.
"""

from collections.abc import Callable
from typing import NamedTuple

from goqueue.cluster.copies import Copies, CopyId, id_of
from goqueue.cluster.followed import Followed
from goqueue.cluster.peers import PeerWay
from goqueue.cluster.throttle import Throttle
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.replica.replica import Replica
from goqueue.replica.roles import Following
from goqueue.runtime.clock import Clock, Timer
from goqueue.telemetry.logs import get_logger
from goqueue.wire.kafka.codec import decode, encode
from goqueue.wire.kafka.errors import MalformedRequest
from goqueue.wire.kafka.messages.fetch import (
    FetchedPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from goqueue.wire.kafka.peering import FETCH, VERSIONS

VERSION = VERSIONS[FETCH]
WAIT_MS = 500
ANSWER_MS_MAX = 2500
"""A leader that takes longer is not there."""
SILENT_MS = 1500
"""A leader whose answer takes so long stands still, or is cut off: nobody is sent to it until it is heard of again."""
ANSWER_BYTES_MAX = 2 * 1024 * 1024
AT_ONCE_MAX = 2
SYNC_WAIT_MS = 4
"""How long the next fetch may wait for a sync that it would tell of."""
TURN_S = 0.002
"""What has come is taken in slices, so that others have their turn."""
FULL_ANSWERS_MAX = 4
AGAIN_MS = (50, 1000)
NO_ANSWER = -1
COMPLAIN_EVERY = 100

events = get_logger("replication")


class Myself(NamedTuple):
    """Who fetches, in which of its lives."""

    node_id: int
    incarnation: int
    leaves: bool = False
    """It stops soon: leaders are not to wait for it."""


class LeaderLink:
    """To one node, for live copies or for those that catch up."""

    def __init__(
        self,
        way: PeerWay,
        me: Callable[[], Myself],
        copies: Copies,
        clock: Clock,
        *,
        throttle: Throttle | None,
        on_full: Callable[["LeaderLink", Followed], None],
        on_adopt: Callable[[Replica], None],
    ) -> None:
        """`throttle`: for those that catch up. `on_full`: called with a copy for which the answers are full, or, with a
        throttle, are full no longer."""
        self._way = way
        self._me = me
        self._copies = copies
        self._clock = clock
        self._throttle = throttle
        self._on_full = on_full
        self.adopt = on_adopt
        self.fetches = self.failures = self.copied_bytes = 0
        """Since it was made, see `ports.copying`."""
        self._followed: dict[CopyId, Followed] = {}
        self._news: dict[CopyId, None] = {}
        """To be named in the next fetch."""
        self._named: dict[CopyId, None] = {}
        """The leader has them in the session."""
        self._forgotten: dict[CopyId, None] = {}
        self._session_id = 0
        self._session_epoch = 0
        self._session_on = 0
        """The connection that it belongs to, by its number."""
        self._life = 0
        """Of the session: an answer to an earlier one is dropped."""
        self._under_way = 0
        self._heard = NO_ANSWER
        self._failures = 0
        self._backlog: list[tuple[CopyId, FetchedPartition]] = []
        self._timer: Timer | None = None
        self._waits_since_s: float | None = None
        """For an answer; None: for none."""
        self._listening: Timer | None = None
        self._is_silent = False
        self._is_sending_soon = False
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._followed)

    # -- which copies

    def add(self, replica: Replica) -> None:
        role = replica.role
        assert isinstance(role, Following), replica.name
        copy = id_of(replica)
        known = self._followed.get(copy)
        if known is not None and known.role is role:
            return
        followed = self._followed[copy] = Followed(copy, replica, role, self._copies, self)
        self._forgotten.pop(copy, None)
        if followed.is_synced:
            self.name(followed)

    def move_in(self, followed: Followed) -> None:
        """It came from the other link."""
        followed.link = self
        self._followed[followed.copy] = followed
        self._forgotten.pop(followed.copy, None)
        if followed.is_synced:
            self.name(followed)

    def remove(self, copy: CopyId) -> None:
        """From now on no fetch speaks for it."""
        if self._followed.pop(copy, None) is None:
            return
        self._news.pop(copy, None)
        if self._named.pop(copy, 0) is None:
            self._forgotten[copy] = None
            self._send_soon()

    def name(self, followed: Followed) -> None:
        if self._followed.get(followed.copy) is followed:
            self._news[followed.copy] = None
            self._send_soon()

    def name_later(self, followed: Followed, delay_ms: int) -> None:
        def again() -> None:
            if followed.is_current and followed.is_synced:
                followed.link.name(followed)

        self._clock.call_after(delay_ms, again)

    # -- fetching

    def _send_soon(self) -> None:
        """Syncs that end in the same moment are told of together."""
        if not self._is_sending_soon and not self._is_closed:
            self._is_sending_soon = True
            self._clock.call_soon(self._send)

    def _send_after(self, delay_ms: float) -> None:
        if self._timer is None and not self._is_closed:
            self._timer = self._clock.call_after(delay_ms, self._send_late)

    def _send_late(self) -> None:
        self._timer = None
        self._send()

    def _send(self) -> None:
        self._is_sending_soon = False
        if self._is_closed or self._backlog or not self._may_send():
            return
        if self._throttle is not None and (wait_ms := self._throttle.wait_ms(self._clock.monotonic_s())) > 0:
            self._send_after(wait_ms)
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._session_id and self._session_on != self._way.connection_number and not self._under_way:
            self._reset()  # the connection broke while nothing was followed, and the session with it
        body = encode(self._request(), VERSION)
        life, epoch = self._life, self._session_epoch
        self._under_way += 1
        self.fetches += 1
        self._session_epoch += 1
        if self._waits_since_s is None:
            self._waits_since_s = self._clock.monotonic_s()
            self._listen(SILENT_MS)
        self._way.ask(FETCH, body, lambda answer: self._answered(life, epoch, answer), ANSWER_MS_MAX)

    def _may_send(self) -> bool:
        has_news = bool(self._news or self._forgotten)
        if not has_news and (not self._followed or self._under_way or self._timer is not None):
            return False
        is_backing_off = self._failures and self._timer is not None
        return not is_backing_off and self._under_way < (AT_ONCE_MAX if self._session_id else 1)

    def _request(self) -> FetchRequest:
        me = self._me()
        request = FetchRequest(
            replica_state=ReplicaState(me.node_id, me.incarnation),
            max_wait_ms=WAIT_MS,
            min_bytes=1,
            max_bytes=ANSWER_BYTES_MAX,
            session_id=self._session_id,
            session_epoch=self._session_epoch,
            gq_heard=self._heard,
            gq_catches_up=self._throttle is not None,
            gq_leaves=me.leaves,
        )
        topics: dict[bytes, FetchTopic] = {}
        news, self._news = self._news, {}
        for copy in news:
            followed = self._followed.get(copy)
            asked = followed.request() if followed is not None and followed.is_current else None
            if asked is None:
                continue
            topic = topics.get(copy.topic_id)
            if topic is None:
                topic = topics[copy.topic_id] = FetchTopic(topic_id=copy.topic_id)
            topic.partitions.append(asked)
            self._named[copy] = None
        request.topics = list(topics.values())
        gone: dict[bytes, ForgottenTopic] = {}
        for copy in self._forgotten:
            gone.setdefault(copy.topic_id, ForgottenTopic(topic_id=copy.topic_id)).partitions.append(copy.partition)
        request.forgotten_topics_data = list(gone.values())
        self._forgotten.clear()
        return request

    def _answered(self, life: int, epoch: int, answer: memoryview | GoQueueError) -> None:
        if life != self._life or self._is_closed:
            return
        self._under_way -= 1
        if isinstance(answer, GoQueueError):
            self._begin_anew(str(answer))
            return
        self._hear()
        try:
            response, _ = decode(FetchResponse, VERSION, answer)
        except MalformedRequest as error:
            self._begin_anew(str(error))
            return
        if response.error_code:
            self._begin_anew(Code(response.error_code).name)
            return
        self._failures = 0
        self._heard, self._session_id = epoch, response.session_id
        self._session_on = self._way.connection_number
        for topic in response.responses:
            self._backlog += [(CopyId(topic.topic_id, one.partition_index), one) for one in topic.partitions]
        self._backlog.reverse()
        self._take(life)

    def _take(self, life: int) -> None:
        """What has come, for as long as a turn may last."""
        if life != self._life or self._is_closed:
            return
        began_s, now_ms, size = self._clock.monotonic_s(), self._clock.now_ms(), 0
        while self._backlog:
            copy, answer = self._backlog.pop()
            followed = self._followed.get(copy)
            if followed is not None:
                size += self._take_one(followed, answer, now_ms)
            if self._clock.monotonic_s() - began_s > TURN_S and self._backlog:
                self._clock.call_soon(lambda: self._take(life))
                break
        self.copied_bytes += size
        if self._throttle is not None and size:
            self._throttle.spend(size, self._clock.monotonic_s())
        if self._backlog:
            return
        if self._news or not size:
            self._send_soon()
        elif not self._under_way:
            self._send_after(SYNC_WAIT_MS)  # unless a sync ends earlier

    def _take_one(self, followed: Followed, answer: FetchedPartition, now_ms: int) -> int:
        taken = followed.take(answer, now_ms)
        if taken.is_full:
            followed.full_answers += 1
            if self._throttle is None and followed.full_answers >= FULL_ANSWERS_MAX:
                self._on_full(self, followed)
        elif taken.size or not answer.error_code:
            followed.full_answers = 0
            if self._throttle is not None:
                self._on_full(self, followed)
        return taken.size

    # -- silence

    def _hear(self) -> None:
        self._waits_since_s = self._clock.monotonic_s() if self._under_way else None
        if self._is_silent:
            self._is_silent = False
            self._way.heard()

    def _listen(self, delay_ms: float) -> None:
        """There are many fetches and one timer: it looks how long the answer has been waited for by then."""
        if self._listening is None and not self._is_closed:
            self._listening = self._clock.call_after(delay_ms, self._look_if_silent)

    def _look_if_silent(self) -> None:
        self._listening = None
        if self._waits_since_s is None or not self._followed:
            self._waits_since_s = None
            return
        left_ms = SILENT_MS - (self._clock.monotonic_s() - self._waits_since_s) * 1000
        if left_ms <= 0:
            self._is_silent = True
            self._way.silent()
        self._listen(max(left_ms, WAIT_MS))

    def _begin_anew(self, why: str) -> None:
        """The session is lost, or nobody is there: all copies are named again."""
        if self._failures in (0, COMPLAIN_EVERY):
            events.info("fetches begin anew", node=self._way.node_id, reason=why)
        first_ms, last_ms = AGAIN_MS
        delay_ms = min(first_ms << min(self._failures, 10), last_ms)
        self._failures += 1
        self.failures += 1
        self._reset()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._send_after(delay_ms)

    def _reset(self) -> None:
        self._life += 1
        self._session_id = self._session_epoch = self._under_way = 0
        self._heard = NO_ANSWER
        self._backlog.clear()
        self._named.clear()
        self._forgotten.clear()
        self._news = dict.fromkeys(copy for copy, one in self._followed.items() if one.is_current and one.is_synced)

    def close(self) -> None:
        self._is_closed = True
        self._life += 1
        for timer in (self._timer, self._listening):
            if timer is not None:
                timer.cancel()
        self._timer = self._listening = None
        self._followed.clear()
