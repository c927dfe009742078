"""ShareFetch and ShareAcknowledge: acknowledge first, then lease what is ready in the partitions of the session.

What is plain is leased and read while the acknowledgements become durable, and the answer leaves when they are: so the
event loop has next to nothing left to do when it wakes up for that.

Records are sent in the batches in which they lie in the log; `acquired_records` names those of them that were leased,
and clients show no others.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from goqueue.broker.queues.taking import BYTES_MAX, LeasedPlace, ReceiveRequest
from goqueue.doors.kafka.handlers.share_acks import (
    ALL_DONE,
    Acked,
    acknowledge,
    code_of_partition,
    find_topic,
    lease_ms_of,
)
from goqueue.doors.kafka.handlers.share_entering import enter
from goqueue.doors.kafka.leaders import ELSEWHERE, name_leaders
from goqueue.doors.kafka.request import Request
from goqueue.doors.kafka.share_sessions import CLOSE_EPOCH, OPEN_EPOCH, ShareSession, TopicIdPartition
from goqueue.machines.deliveries.commands import LeasedRun
from goqueue.model.access import Kind
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.quotas import CONSUMED
from goqueue.model.refusal import Refused
from goqueue.model.starts import EARLIEST, LATEST
from goqueue.wire.kafka.messages import share_groups as wire
from goqueue.wire.kafka.messages.common import NodeEndpoint

MAX_WAIT_MS = 5 * 60 * 1000
RECORDS_MAX = 100_000
DELIVERY_COUNT_MAX = 2**15 - 1

Errors = Mapping[TopicIdPartition, GoQueueError]


def handle_share_fetch(request: Request) -> None:
    message: wire.ShareFetchRequest = request.message
    try:
        session = enter(request)
        if message.share_session_epoch != CLOSE_EPOCH and (message.topics or message.forgotten_topics_data):
            session.change(_named(message.topics), _forgotten(message.forgotten_topics_data))
    except Refused as error:
        request.answer(wire.ShareFetchResponse(error_code=error.code, error_message=str(error)))
        return

    if message.share_session_epoch == CLOSE_EPOCH:

        def closed(acked: dict[TopicIdPartition, Acked]) -> None:
            request.sessions.share.close(session)
            response = _Response(request, session)
            response.add_acked(acked)
            request.answer(response.finished())

        acknowledge(request, session, message.topics, renews=message.is_renew_ack, on_acked=closed)
        return
    fetch = _Fetch(request, session)
    acknowledge(request, session, message.topics, renews=message.is_renew_ack, on_acked=fetch.acknowledged)
    fetch.take_plain()


def handle_share_acknowledge(request: Request) -> None:
    message: wire.ShareAcknowledgeRequest = request.message
    try:
        if message.share_session_epoch == OPEN_EPOCH:
            raise Refused(Code.INVALID_SHARE_SESSION_EPOCH, "a session is opened by a fetch")
        session = enter(request)
    except Refused as error:
        request.answer(wire.ShareAcknowledgeResponse(error_code=error.code, error_message=str(error)))
        return

    def acknowledged(acked: dict[TopicIdPartition, Acked]) -> None:
        if message.share_session_epoch == CLOSE_EPOCH:
            request.sessions.share.close(session)
        response = wire.ShareAcknowledgeResponse()
        for topic in message.topics:
            answered = wire.ShareAcknowledgedTopic(topic.topic_id)
            response.responses.append(answered)
            for one in topic.partitions:
                result = acked.get((topic.topic_id, one.partition_index), ALL_DONE)
                answered.partitions.append(
                    wire.ShareAcknowledgedPartition(
                        one.partition_index, result.code, result.message, gq_verdicts=list(result.verdicts)
                    )
                )
        response.node_endpoints = _name_leaders(request, response.responses)
        if message.is_renew_ack:
            response.acquisition_lock_timeout_ms = _renewed_ms(request, session, message.topics)
        request.answer(response)

    acknowledge(request, session, message.topics, renews=message.is_renew_ack, on_acked=acknowledged)
    # Answers leave in the order of their requests: a fetch that waits for records would keep this one waiting too.
    session.hurry()


def _named(topics: Iterable[wire.ShareTopic]) -> list[TopicIdPartition]:
    return [(topic.topic_id, one.partition_index) for topic in topics for one in topic.partitions]


def _forgotten(topics: Iterable[wire.ForgottenShareTopic]) -> Sequence[TopicIdPartition]:
    return [(topic.topic_id, number) for topic in topics for number in topic.partitions] if topics else ()


def _renewed_ms(request: Request, session: ShareSession, topics: Iterable[wire.ShareTopic]) -> int:
    image = request.broker.topics.image
    known = [found.name for topic in topics if (found := image.by_id(topic.topic_id)) is not None]
    return min((lease_ms_of(request, session.group_id, name) for name in known), default=0)


class _Fetch:
    """One ShareFetch. Invariant: it is answered once, when its acknowledgements are durable and it has its records, or
    need not wait for any."""

    def __init__(self, request: Request, session: ShareSession) -> None:
        self._request = request
        self._session = session
        self._acked: dict[TopicIdPartition, Acked] | None = None
        """None: they are not durable yet."""
        self._leased: Sequence[LeasedPlace] = ()
        """Before they were."""
        self._response: _Response | None = None
        """With that."""
        self._is_hurried = False
        self._cancel: Callable[[], None] | None = None
        """While it waits for records: it need not any longer."""
        self._answer_empty: Callable[[], None] | None = None
        session.began(self)

    def hurry(self) -> None:
        """When its acknowledgements are durable it shall not wait for records."""
        self._is_hurried = True
        if self._cancel is not None and self._answer_empty is not None:
            self._cancel()
            self._answer_empty()

    def end(self) -> None:
        """What is not durable yet is waited for."""
        if self._cancel is not None:
            self._cancel()
            self._refuse_closed()

    def acknowledged(self, acked: dict[TopicIdPartition, Acked]) -> None:
        self._acked = acked
        if self._session.is_over:
            self._give_back()
            self._refuse_closed()
        elif self._response is None:
            self._fetch(acked)
        else:
            self._send(self._response, acked)

    def take_plain(self) -> None:
        """Lease what can be leased in one step: that stores nothing. Whatever else a fetch may have to do, it does when
        what is acknowledged in this turn was stored together."""
        request, session = self._request, self._session
        if self._acked is not None or len(session.partitions) != 1 or session.told_errors or not self._wants_records:
            return
        (key,) = session.partitions
        try:
            place = (find_topic(request, key), key[1])
            leased = request.broker.receiver.receive_plain(self._wish((place,), 0))
        except GoQueueError:
            return  # it is told when the acknowledgements are
        if leased is not None:
            self._leased, self._response = (leased,), _Response(request, session)
            self._response.add_records(key, leased)

    def _give_back(self) -> None:
        """Its member may go on, in another session, and would hold what it never heard of."""
        for one in self._leased:
            if one.slices is not None:
                topic = self._request.broker.kept(one.topic)
                self._session.leases.undo(topic, one.partition, one.slices.runs, one.lease)

    @property
    def _wants_records(self) -> bool:
        message: wire.ShareFetchRequest = self._request.message
        wants = message.max_records > 0 and message.max_bytes > 0 and not message.is_renew_ack
        return wants and not self._request.is_in_debt

    def _wish(self, places: Sequence[tuple[str, int]], wait_ms: int) -> ReceiveRequest:
        message: wire.ShareFetchRequest = self._request.message
        return ReceiveRequest(
            self._session.group_id,
            self._session.member_id,
            places,
            min(message.max_records, RECORDS_MAX),
            min(message.max_bytes, BYTES_MAX),
            wait_ms,
            message.gq_lease_ms if message.gq_lease_ms > 0 else None,
            message.gq_start if message.gq_start in (EARLIEST, LATEST) else LATEST,
            is_opened=False,
        )

    def _fetch(self, acked: dict[TopicIdPartition, Acked]) -> None:
        request, session = self._request, self._session
        places, errors = _readable(request, session)
        has_news = not session.told_errors.issuperset(errors)
        session.told_errors = frozenset(errors)
        wants_records = self._wants_records
        # What is known to be amiss is not told again and again without a pause.
        is_over = has_news or not wants_records or self._is_hurried
        wait_ms = 0 if is_over else max(0, min(request.message.max_wait_ms, MAX_WAIT_MS))

        def answer(leased: Iterable[LeasedPlace] = ()) -> None:
            response = _Response(request, session, errors)
            response.add_leased(leased, places)
            self._send(response, acked)

        if not wants_records or (not places and not (errors and wait_ms)):
            answer()
            return
        if not places:
            timer = request.broker.clock.call_after(wait_ms, answer)
            self._wait(timer.cancel, answer)
            return
        try:
            receiving = request.broker.receiver.receive(self._wish(list(places), wait_ms), answer)
        except Refused as error:  # it has become a consumer group since the session was opened
            self._answer(wire.ShareFetchResponse(error_code=error.code, error_message=str(error)))
            return
        if receiving is not None:
            self._wait(receiving.cancel, answer)

    def _wait(self, cancel: Callable[[], None], answer_empty: Callable[[], None]) -> None:
        self._cancel, self._answer_empty = cancel, answer_empty
        self._request.reply.on_lost = cancel

    def _send(self, response: "_Response", acked: Mapping[TopicIdPartition, Acked]) -> None:
        response.add_acked(acked)
        response.tell_lease()
        self._answer(response.finished())

    def _refuse_closed(self) -> None:
        code = Code.SHARE_SESSION_NOT_FOUND
        self._answer(wire.ShareFetchResponse(error_code=code, error_message="the session was closed"))

    def _answer(self, response: wire.ShareFetchResponse) -> None:
        self._cancel = self._answer_empty = None
        self._session.answered(self)
        self._request.answer(response)


def _readable(
    request: Request, session: ShareSession
) -> tuple[dict[tuple[str, int], bytes], dict[TopicIdPartition, GoQueueError]]:
    """Where this session may lease records (with the ids of the topics), and why not elsewhere."""
    places: dict[tuple[str, int], bytes] = {}
    errors: dict[TopicIdPartition, GoQueueError] = {}
    for key in session.partitions:
        try:
            name = find_topic(request, key)
            request.broker.topics.replica(name, key[1])
        except GoQueueError as error:
            errors[key] = error.kept()
        else:
            places[name, key[1]] = key[0]
    return places, errors


class _Response:
    """A ShareFetchResponse in the making: partitions that have something to say."""

    def __init__(
        self,
        request: Request,
        session: ShareSession,
        errors: Errors | None = None,
    ) -> None:
        self._request = request
        self._session = session
        self._deadlines_ms: list[int] = []
        self._topics: dict[bytes, wire.ShareFetchedTopic] = {}
        self._partitions: dict[TopicIdPartition, wire.ShareFetchedPartition] = {}
        self.message = wire.ShareFetchResponse()
        self._has_failures = False
        for key, error in (errors or {}).items():
            self._fail(key, error)

    def add_acked(self, acked: Mapping[TopicIdPartition, Acked]) -> None:
        for key, (code, text, _) in acked.items():
            part = self._part(key)
            if code is not Code.NONE:
                part.acknowledge_error_code, part.acknowledge_error_message = code, text
                self._has_failures = True

    def finished(self) -> wire.ShareFetchResponse:
        if self._has_failures:
            self.message.node_endpoints = _name_leaders(self._request, self.message.responses)
        return self.message

    def _part(self, key: TopicIdPartition) -> wire.ShareFetchedPartition:
        part = self._partitions.get(key)
        if part is None:
            topic = self._topics.get(key[0])
            if topic is None:
                topic = self._topics[key[0]] = wire.ShareFetchedTopic(key[0])
                self.message.responses.append(topic)
            part = self._partitions[key] = wire.ShareFetchedPartition(key[1])
            topic.partitions.append(part)
        return part

    def _fail(self, key: TopicIdPartition, error: GoQueueError) -> None:
        part = self._part(key)
        part.error_code, part.error_message = code_of_partition(error), str(error)
        self._has_failures = True

    def _may_read(self, key: TopicIdPartition, topic: str) -> bool:
        """Still: the right may have been taken away while this waited. The lease runs out by itself then."""
        try:
            self._request.broker.admit(Kind.TOPIC, topic)
        except GoQueueError as error:
            self._fail(key, error)
            return False
        return True

    def add_leased(self, leased: Iterable[LeasedPlace], topic_ids: Mapping[tuple[str, int], bytes]) -> None:
        for one in leased:
            key = (topic_ids[one.topic, one.partition], one.partition)
            if one.error is not None:
                self._fail(key, one.error)
            elif self._may_read(key, one.topic):
                self.add_records(key, one)

    def add_records(self, key: TopicIdPartition, leased: LeasedPlace) -> None:
        """That the client may read."""
        slices = leased.slices
        if slices is None:
            return
        request = self._request
        self._session.leases.took_from(request.broker.kept(leased.topic), leased.partition)
        self._deadlines_ms.append(leased.deadline_ms)
        part = self._part(key)
        pieces = slices.slices
        part.records = pieces[0].view() if len(pieces) == 1 else b"".join([piece.view() for piece in pieces])
        part.acquired_records = _acquired(slices.runs)
        if request.allowance is not None:
            request.count(CONSUMED, sum(run.last - run.first + 1 for run in slices.runs))

    def tell_lease(self) -> None:
        """How long the first of what was leased is leased from now on."""
        broker = self._request.broker
        if self._deadlines_ms:
            lease_ms = max(0, min(self._deadlines_ms) - broker.clock.now_ms())
        else:
            lease_ms = broker.topics.defaults.lease_ms
        self.message.acquisition_lock_timeout_ms = lease_ms


def _name_leaders(
    request: Request, topics: Iterable[wire.ShareFetchedTopic | wire.ShareAcknowledgedTopic]
) -> list[NodeEndpoint]:
    """In what partitions are answered that are led elsewhere. Returns where those leaders are."""
    image = request.broker.topics.image
    places: list[tuple[str, int, Any]] = []  # in these answers there is always a leader, if only -1
    for each in topics:
        known = image.by_id(each.topic_id)
        if known is not None:
            places += ((known.name, one.partition_index, one) for one in each.partitions if _is_led_elsewhere(one))
    return name_leaders(request, places)


def _is_led_elsewhere(answer: wire.ShareFetchedPartition | wire.ShareAcknowledgedPartition) -> bool:
    if answer.error_code in ELSEWHERE:
        return True
    return isinstance(answer, wire.ShareFetchedPartition) and answer.acknowledge_error_code in ELSEWHERE


def _acquired(runs: Iterable[LeasedRun]) -> list[wire.AcquiredRecords]:
    """Neighbours that were delivered equally often are one; clients want them in the order of offsets."""
    found: list[wire.AcquiredRecords] = []
    for run in sorted(runs):
        count = min(run.attempt, DELIVERY_COUNT_MAX)
        if found and found[-1].last_offset == run.first - 1 and found[-1].delivery_count == count:
            found[-1].last_offset = run.last
        else:
            found.append(wire.AcquiredRecords(run.first, run.last, count))
    return found
