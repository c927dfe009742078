"""What a run of Produce requests has for each partition, and how those who sent it are answered."""

from collections.abc import Iterator
from functools import partial

from goqueue.broker.accounts.quotas import Allowance
from goqueue.doors.kafka.connection import Connection
from goqueue.doors.kafka.reply import Reply
from goqueue.doors.kafka.routes import Route, Routes
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.quotas import PRODUCED, REQUESTS
from goqueue.records.batch import Batch
from goqueue.replica.replica import Appended, Replica


class Lot:
    """What a run has for one partition, in the order in which it came."""

    __slots__ = ("batches", "replica", "shares")

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self.batches: list[Batch] = []
        self.shares: list[Share] = []

    def append(self, stretches: "list[Stretch]") -> bool:
        """Whether it can be acknowledged at once."""
        replica, shares = self.replica, self.shares
        results = shares[0].publisher.append(replica, self.batches)
        if len(shares) == 1:
            shares[0].results = results
        else:
            for share, result in zip(self.order(stretches), results):
                share.results.append(result)
        start_offset = replica.start_offset
        for share in shares:
            share.start_offset = start_offset
        return replica.failure is None and replica.high_watermark >= replica.end_offset

    def order(self, stretches: "list[Stretch]") -> "Iterator[Share]":
        """Whose each of its batches is."""
        return (share for stretch in stretches for share, _, _ in stretch.entries if share.lot is self)


class Share:
    """What of a lot one client has sent, in one version of Produce."""

    __slots__ = (
        "_waiting",
        "answers",
        "code",
        "correlation_ids",
        "lot",
        "publisher",
        "results",
        "route",
        "start_offset",
        "throttle_ms",
    )

    def __init__(self, route: Route, lot: Lot, routes: Routes) -> None:
        self.route = route
        self.lot = lot
        self.publisher = routes.publisher
        self.correlation_ids: list[int] = []
        self.results: list[Appended | GoQueueError] = []
        self.answers: list[bytes] = []
        self.start_offset = 0
        self.code = Code.NONE
        """Why what was appended cannot be acknowledged, if it cannot."""
        self.throttle_ms = 0
        self._waiting: list[Stretch] = []

    def charge(self, allowance: Allowance, stretches: "list[Stretch]") -> int:
        """For how many milliseconds the client has to wait."""
        batches = [batch for batch, whose in zip(self.lot.batches, self.lot.order(stretches)) if whose is self]
        requests_ms = allowance.take(REQUESTS, len(batches))
        self.throttle_ms = max(requests_ms, allowance.take(PRODUCED, sum(batch.size for batch in batches)))
        if allowance.counts(PRODUCED):
            messages = sum(batch.record_count for batch in batches)
            self.throttle_ms = max(self.throttle_ms, allowance.take_messages(PRODUCED, messages))
        return self.throttle_ms

    def wait(self, started_s: float, stretches: "list[Stretch]") -> None:
        """Answer those stretches, too, when it may be acknowledged."""
        self._waiting = stretches
        route = self.route
        ended = partial(self._ended, started_s)
        self.publisher.acknowledgements.wait(route.replica, route.replica.end_offset, route.timeout_ms, ended)

    def _ended(self, started_s: float, code: Code) -> None:
        self.code = code
        self.finish(started_s)
        waiting, self._waiting = self._waiting, []
        for stretch in waiting:
            stretch.ended()

    def finish(self, started_s: float) -> None:
        """Nothing is waited for any more."""
        route, last = self.route, self.results[-1]
        if self.code is Code.NONE:
            ids, results = self.correlation_ids, self.results
            self.answers = route.acknowledge(ids, results, self.start_offset, self.throttle_ms)
            if type(last) is Appended:
                self.publisher.acknowledged(route.topic, route.index, last.base_offset, started_s, len(results))
        else:
            self.answers = [
                route.refuse(correlation_id, result, self.start_offset, self.code, self.throttle_ms)
                for correlation_id, result in zip(self.correlation_ids, self.results)
            ]


NOTHING = memoryview(b"")

Entry = tuple[Share, int, memoryview]
"""A request: its share, its place there, and its frame."""


class Stretch:
    """Requests that one connection has sent in a row."""

    __slots__ = ("_missing", "_reply", "connection", "entries")

    def __init__(self, connection: Connection, entries: list[Entry]) -> None:
        self.connection = connection
        self.entries = entries
        self._reply: Reply | None = None
        self._missing = 0

    def answer(self, *, is_reading: bool) -> None:
        """`is_reading`: what else comes from the read at hand is answered in the same write."""
        if is_reading:
            self.connection.expect_reply(len(self.entries)).send(self._answers())
        else:
            self.connection.answer(self._answers(), len(self.entries))

    def wait(self, shares: int) -> None:
        """So many shares that it has a part of are not acknowledged yet. Their frames are not kept meanwhile."""
        self.entries = [(share, place, NOTHING) for share, place, _ in self.entries]
        self._missing = shares
        self._reply = self.connection.expect_reply(len(self.entries))

    def ended(self) -> None:
        """One of them is."""
        self._missing -= 1
        if not self._missing and self._reply is not None:
            self._reply.send(self._answers())

    def _answers(self) -> list[bytes]:
        (share, first, _), (other, last, _) = self.entries[0], self.entries[-1]
        if share is other and last - first == len(self.entries) - 1:
            return share.answers[first : last + 1]
        return [share.answers[place] for share, place, _ in self.entries]
