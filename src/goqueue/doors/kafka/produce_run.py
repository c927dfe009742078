"""Produce requests that come in one turn of the event loop, over all connections: one write per partition, and one wait
until it may be acknowledged. What a turn costs is paid once, whether it brings one request or a hundred.
"""

from collections.abc import Callable
from typing import Protocol

from goqueue.doors.kafka.connection import Connection
from goqueue.doors.kafka.produce_shares import Entry, Lot, Share, Stretch
from goqueue.doors.kafka.routes import Route
from goqueue.model.errors import GoQueueError
from goqueue.replica.replica import Replica

RUN_MAX = 1000
"""Requests of one read; about as many buffers as Linux writes in one call."""
RUN_BYTES_MAX = 64 * 1024
"""A run with more records, or with more of the shared memory, is not worth waiting for the end of the turn."""


class Clock(Protocol):
    def call_soon(self, call: Callable[[], None]) -> object: ...


class ProduceRun:
    """Whatever else comes, from any connection, finishes it first: requests are handled in the order in which they
    came."""

    def __init__(
        self,
        clock: Clock,
        handle: Callable[[Connection, memoryview], None],
        fail: Callable[[Connection, Exception], None],
    ) -> None:
        """`handle`: a request that cannot be taken after all. `fail`: a fault of ours hit those who wait there."""
        self._clock = clock
        self._handle = handle
        self._fail = fail
        self.kept_bytes = 0
        """What it holds lies in the first bytes of the shared memory."""
        self._lots: dict[Replica, Lot] = {}
        self._shares: dict[Route, Share] = {}
        self._stretches: list[Stretch] = []
        self._entries: list[Entry] = []
        """Of the read at hand, and whose it is."""
        self._reader: Connection | None = None
        self._bytes = 0
        """Of their records."""
        self._is_alone = False
        """It has to be finished with the read at hand."""
        self._is_due = False
        """It is finished at the end of this turn."""
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
        if found is None or len(self._entries) >= RUN_MAX:
            return False
        route, correlation_id, start, end = found
        share = self._shares.get(route)
        publisher, refused = routes.publisher, connection.refused_batches.at
        if (share is None and not route.replica.may_acknowledge) or (refused and (route.topic, route.index) in refused):
            return False  # who handles it waits until it is handed over, or says why and who leads
        if self._read is not None:  # one look at all of them costs a fifth of one look at each
            self._has_no_wishes = publisher.sees_no_wishes(self._read)
            self._read = None
        is_alone = route.is_limited  # what a client is charged for is its own
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
                is_alone = is_alone or batch.is_transactional  # its transaction may end before the turn does
            if route.room is not None and not route.room.takes(batch.size):
                return False
        except GoQueueError:
            return False  # who handles it meets the same error, and can tell it
        if is_alone:
            if self._stretches:
                self.finish()
                share = None
            self._is_alone = True
        if share is None:
            share = self._share(route, connection)
        self._reader = connection
        self._entries.append((share, len(share.correlation_ids), frame))
        share.correlation_ids.append(correlation_id)
        share.lot.batches.append(batch)
        self._bytes += end - start
        return True

    def _share(self, route: Route, connection: Connection) -> Share:
        routes = connection.routes
        if not self._shares:
            self._started_s = routes.publisher.now_s()
        lot = self._lots.get(route.replica)
        if lot is None:
            lot = self._lots[route.replica] = Lot(route.replica)
        share = self._shares[route] = Share(route, lot, routes)
        lot.shares.append(share)
        return share

    def end(self, connection: Connection, end: int, *, is_alone: bool) -> None:
        """No more comes from this read, which lies before `end` in the shared memory if not elsewhere; what was seen in
        it says nothing of the next. `is_alone`: what this connection has sent is finished now."""
        self._read = None
        self._has_no_wishes = False
        if not self._entries:
            return
        connection.took(len(self._entries))
        self._stretch(connection)
        if is_alone or self._is_alone or self._bytes > RUN_BYTES_MAX or end > RUN_BYTES_MAX:
            self.finish()
            return
        self.kept_bytes = max(self.kept_bytes, end)
        if not self._is_due:
            self._is_due = True
            self._clock.call_soon(self._turn_ended)

    def _stretch(self, reader: Connection) -> None:
        self._stretches.append(Stretch(reader, self._entries))
        self._entries, self._reader = [], None

    def _turn_ended(self) -> None:
        self._is_due = False
        self.finish()

    def finish(self) -> None:
        """Append what was taken; it is answered when it is acknowledged."""
        reader = self._reader
        if reader is not None:
            self._stretch(reader)
        stretches = self._stretches
        if not stretches:
            return
        lots, replicas = list(self._lots.values()), list(self._lots)
        self._lots, self._shares, self._stretches = {}, {}, []
        self._bytes = self.kept_bytes = 0
        self._is_alone = False
        try:
            if all(each.may_acknowledge and (not each.needs_session or each.is_fresh) for each in replicas):
                self._append(lots, stretches, reader)
            else:  # what was decided in this turn came between, or this node was cut off
                for stretch in stretches:
                    for _, _, frame in stretch.entries:
                        self._handle(stretch.connection, frame)
        except Exception as error:  # noqa: BLE001  a bug of ours must not leave clients waiting
            for stretch in stretches:
                self._fail(stretch.connection, error)
        for lot in lots:
            lot.shares = []  # they know it: that would be a cycle

    def _append(self, lots: list[Lot], stretches: list[Stretch], reader: Connection | None) -> None:
        """`reader`: there is more in the read of this connection."""
        waiting: list[Share] = []
        first, sender = lots[0].shares[0], stretches[0].connection
        for lot in lots:
            for share in lot.shares:
                allowance = share.route.allowance
                if allowance is not None and (throttle_ms := share.charge(allowance, stretches)):
                    sender.mute(throttle_ms)
            if not lot.append(stretches):
                waiting += lot.shares
                lot.batches = []  # they are in the log: whoever waits for copies need not keep them
            else:
                for share in lot.shares:
                    share.finish(self._started_s)
        allowance = first.route.allowance
        if allowance is not None and (owed_ms := allowance.take_time(first.publisher.now_s() - self._started_s)):
            sender.mute(owed_ms)
        parts: dict[Share, list[Stretch]] = {share: [] for share in waiting}
        for stretch in stretches:
            missing = dict.fromkeys(share for share, _, _ in stretch.entries if share in parts) if parts else ()
            if missing:
                stretch.wait(len(missing))
                for share in missing:
                    parts[share].append(stretch)
            else:
                stretch.answer(is_reading=stretch.connection is reader)
        for share, its in parts.items():
            share.wait(self._started_s, its)
