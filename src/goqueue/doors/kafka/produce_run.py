"""Produce requests that come in one read, as a pipelining producer sends them: one write per partition, one reply."""

from functools import partial

from goqueue.broker.accounts.quotas import Allowance
from goqueue.doors.kafka.connection import Connection
from goqueue.doors.kafka.reply import Reply
from goqueue.doors.kafka.routes import Route, Routes
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.quotas import PRODUCED, REQUESTS
from goqueue.records.batch import Batch
from goqueue.replica.replica import Appended

RUN_MAX = 1000
"""Requests; about as many buffers as Linux writes in one call."""


class Share:
    """What one run has for one partition."""

    __slots__ = ("batches", "code", "correlation_ids", "results", "route", "start_offset", "throttle_ms")

    def __init__(self, route: Route) -> None:
        self.route = route
        self.correlation_ids: list[int] = []
        self.batches: list[Batch] = []
        self.results: list[Appended | GoQueueError] = []
        self.start_offset = 0
        self.code = Code.NONE
        """Why what was appended cannot be acknowledged, if it cannot."""
        self.throttle_ms = 0

    def charge(self, allowance: Allowance) -> int:
        """For how many milliseconds the client has to wait."""
        requests_ms = allowance.take(REQUESTS, len(self.batches))
        self.throttle_ms = max(requests_ms, allowance.take(PRODUCED, sum(batch.size for batch in self.batches)))
        if allowance.counts(PRODUCED):
            messages = sum(batch.record_count for batch in self.batches)
            self.throttle_ms = max(self.throttle_ms, allowance.take_messages(PRODUCED, messages))
        return self.throttle_ms

    def measure(self, routes: Routes, started_s: float) -> None:
        """How long they took that are acknowledged."""
        last = self.results[-1]
        if type(last) is Appended and self.code is Code.NONE:
            route = self.route
            routes.publisher.acknowledged(route.topic, route.index, last.base_offset, started_s, len(self.results))

    def answers(self) -> list[bytes]:
        if self.code is Code.NONE:
            return self.route.acknowledge(self.correlation_ids, self.results, self.start_offset, self.throttle_ms)
        return [
            self.route.refuse(correlation_id, result, self.start_offset, self.code, self.throttle_ms)
            for correlation_id, result in zip(self.correlation_ids, self.results)
        ]


class RunReply:
    """Answers all requests of a run when the last of its partitions is acknowledged."""

    __slots__ = ("_order", "_reply", "_routes", "_shares", "_started_s", "_waiting")

    def __init__(
        self,
        reply: Reply,
        shares: list[Share],
        order: list[Share],
        routes: Routes,
        started_s: float,
        waiting: int,
    ) -> None:
        self._reply = reply
        self._shares = shares
        self._order = order
        self._routes = routes
        self._started_s = started_s
        self._waiting = waiting
        """Shares that `wait` was or will be called for: one that failed ends at once, and must not end the others."""

    def wait(self, share: Share) -> None:
        route, acknowledgements = share.route, self._routes.publisher.acknowledgements
        acknowledgements.wait(route.replica, route.replica.end_offset, route.timeout_ms, partial(self._ended, share))

    def _ended(self, share: Share, code: Code) -> None:
        share.code = code
        self._waiting -= 1
        if not self._waiting:
            self._reply.send(_answers(self._shares, self._order))
            for each in self._shares:
                each.measure(self._routes, self._started_s)


def _answers(shares: list[Share], order: list[Share]) -> list[bytes]:
    """`order` has the share of each request."""
    if len(shares) == 1:
        return shares[0].answers()
    answers_of = {share: iter(share.answers()) for share in shares}
    return [next(answers_of[share]) for share in order]


class ProduceRun:
    """Invariant: empty between two reads, because what it holds lies in the memory that the next read fills."""

    def __init__(self) -> None:
        self._shares: dict[Route, Share] = {}
        self._order: list[Share] = []
        self._read: memoryview | None = None
        """What is being gone through, as long as nobody has looked for wishes in it."""
        self._started_s = 0.0
        """When the first request of this run was taken."""
        self._has_no_wishes = False

    def begin(self, data: memoryview) -> None:
        """The requests that come next lie in `data`."""
        self._read = data

    def take(self, connection: Connection, frame: memoryview) -> bool:
        """False: this one is not for here, and before it is handled the run must be finished."""
        routes = connection.routes
        found = routes.find(connection, frame)
        if found is None or len(self._order) >= RUN_MAX:
            return False
        route, correlation_id, start, end = found
        share = self._shares.get(route)
        publisher = routes.publisher
        if share is None:
            if not route.replica.may_acknowledge:
                return False  # who handles it waits until it is handed over, or says why and who leads
            if self._read is not None:  # one look at all of them costs a fifth of one look at each
                self._has_no_wishes = publisher.sees_no_wishes(self._read)
                self._read = None
        try:
            batch = publisher.admit_plain(route.replica, frame, start, end) if self._has_no_wishes else None
            if batch is None:
                batch = publisher.admit(route.topic, route.index, frame[start:end])
                if (
                    publisher.must_open(route.replica, route.topic, route.index, batch, self._has_no_wishes)
                    # or what is missing was taken just now
                    or (route.begins_at_zero and publisher.misses_first(route.replica, batch))
                ):
                    return False
            if route.room is not None and not route.room.takes(batch.size):
                return False
        except GoQueueError:
            return False  # who handles it meets the same error, and can tell it
        if share is None:
            share = self._shares[route] = Share(route)
            if not self._order:
                self._started_s = publisher.now_s()
        share.correlation_ids.append(correlation_id)
        share.batches.append(batch)
        self._order.append(share)
        return True

    def end(self, connection: Connection) -> None:
        """No more comes from this read; what was seen in its memory says nothing of the next."""
        self._read = None
        self._has_no_wishes = False
        if self._order:
            self.finish(connection, is_last=True)

    def finish(self, connection: Connection, *, is_last: bool = False) -> None:
        """Append what was taken; it is answered when it is acknowledged. `is_last`: nothing else comes from this read,
        which would be answered in the same write."""
        if not self._order:
            return
        order, self._order = self._order, []
        routes = connection.routes
        shares, self._shares = list(self._shares.values()), {}
        waiting = []
        publisher = routes.publisher
        for share in shares:
            route = share.route
            replica = route.replica
            if route.allowance is not None and (throttle_ms := share.charge(route.allowance)):
                connection.mute(throttle_ms)
            share.results = publisher.append(replica, share.batches)
            share.batches = []  # they lie in memory that will be filled anew
            share.start_offset = replica.start_offset
            if replica.failure is not None or replica.high_watermark < replica.end_offset:
                waiting.append(share)
        first = shares[0].route.allowance
        if first is not None and (owed_ms := first.take_time(publisher.now_s() - self._started_s)):
            connection.mute(owed_ms)
        if not waiting:
            answers = _answers(shares, order)
            if is_last:
                connection.answer(answers, len(order))
            else:
                connection.expect_reply(len(order)).send(answers)
            for share in shares:
                share.measure(routes, self._started_s)
            return
        reply = connection.expect_reply(len(order))
        pending = RunReply(reply, shares, order, routes, self._started_s, len(waiting))
        for share in waiting:
            pending.wait(share)
