"""The audit trail: who changed what, who was refused, and who tried to log in. A change is written down before it is
made. Each record has the hash of the one before it, so that a hole shows.
"""

import asyncio
import hashlib
import hmac
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

import msgspec

from goqueue.broker.accounts.hidden_offsets import HiddenOffsets
from goqueue.model.access import Operation, Permission
from goqueue.model.audit import NO_CHANGE, Asked, AuditLevel, AuditPage, AuditRecord, Outcome, Recorded
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import Refused
from goqueue.model.secret import Secret
from goqueue.records.batch import check_batch, split
from goqueue.records.build import build_batch
from goqueue.records.decode import decode
from goqueue.replica.replica import Replica
from goqueue.runtime.clock import Clock, Timer
from goqueue.telemetry.logs import get_logger

AUDIT = "@audit"
RETENTION_MS = 90 * 24 * 60 * 60 * 1000
SUM_MS = 60_000
SUMS_MAX = 1000
"""Different things that are summed up in a minute; beyond them what is alike in all but its name is one."""
TEXT_MAX = 300
READ_BYTES = 256 * 1024
AT_ONCE = 200
LOOKED_THROUGH_MAX = 100_000
"""Records, for one question."""
NO_SECRET = Secret(b"")

T = TypeVar("T")
events = get_logger("audit")


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(AuditRecord).decode


class Audit:
    def __init__(
        self,
        replica: Replica,
        clock: Clock,
        node_id: int,
        level: AuditLevel = AuditLevel.ADMIN,
        secret: Secret[bytes] = NO_SECRET,
    ) -> None:
        """`secret`: of the cluster."""
        self._replica = replica
        self._clock = clock
        self._node_id = node_id
        self._level = level
        self._secret = secret
        self._previous = _last_hash(replica)
        self._sums: dict[tuple[Asked, Outcome, str], int] = {}
        self._timer: Timer | None = None
        self._fails = False

    def is_noted(self, principal: str, permission: Permission) -> bool:
        """Of a request that changes nothing."""
        if self._level is AuditLevel.ALL:
            return True
        reads = any(Operation.READ in needed for needed in permission.needs.values())
        return self._level is AuditLevel.ACCESS and reads and principal.startswith("User:")

    @property
    def notes_logins(self) -> bool:
        return self._level is not AuditLevel.ADMIN

    # -- changes

    def begin(self, asked: Asked, then: Callable[[int | GoQueueError], None], request_id: str = "") -> None:
        """`then`: called when the record is durable, with its offset; or with why the change must not be made."""
        try:
            self._when_stored(self._append(asked, Outcome.BEGUN, request_id=request_id), then)
        except GoQueueError as error:
            then(error)

    async def carry_out(self, asked: Asked, work: Callable[[], Awaitable[T]], request_id: str = "") -> T:
        """Make a change: its record is durable before it begins, and its outcome before it is answered."""
        change = await self._waited(lambda then: self.begin(asked, then, request_id))
        try:
            reply = await work()
        except GoQueueError as error:
            code = error.code.name if isinstance(error, Refused) else type(error).__name__
            await self._end(asked, Outcome.REFUSED, change, request_id, code)
            raise
        except BaseException as error:
            self._append(asked, Outcome.FAILED, change=change, code=type(error).__name__, request_id=request_id)
            raise
        await self._end(asked, Outcome.DONE, change, request_id)
        return reply

    async def _end(self, asked: Asked, outcome: Outcome, change: int, request_id: str, code: str = "") -> None:
        """The change stands, or does not: if this cannot be written its beginning is there all the same."""
        try:
            offset = self._append(asked, outcome, change=change, code=code, request_id=request_id)
            await self._waited(lambda then: self._when_stored(offset, then))
        except GoQueueError as error:
            self._tell_failure(error)

    async def _waited(self, start: Callable[[Callable[[int | GoQueueError], None]], None]) -> int:
        done: asyncio.Future[int | GoQueueError] = asyncio.get_running_loop().create_future()
        start(lambda found: None if done.done() else done.set_result(found))
        found = await done
        if isinstance(found, GoQueueError):
            raise found
        return found

    def _when_stored(self, offset: int, then: Callable[[int | GoQueueError], None]) -> None:
        def stored() -> None:
            failure = self._replica.failure
            then(offset if failure is None else Refused(Code.KAFKA_STORAGE_ERROR, f"it cannot be audited: {failure}"))

        self._replica.when_stored(offset + 1, stored)

    # -- what is summed up

    def note(self, asked: Asked, outcome: Outcome = Outcome.DONE, code: str = "") -> None:
        """One of many, perhaps: those of a minute are one record. Guessing must not fill a disk."""
        key = asked, outcome, code
        if key not in self._sums and len(self._sums) >= SUMS_MAX:
            others = Asked("", "", asked.api, asked.operation, "others", tenant=asked.tenant)
            key = others, outcome, code
        self._sums[key] = self._sums.get(key, 0) + 1
        if self._timer is None:
            self._timer = self._clock.call_after(SUM_MS, self.flush)

    def flush(self) -> None:
        """What was summed up is written."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        sums, self._sums = self._sums, {}
        for (asked, outcome, code), count in sums.items():
            try:
                self._append(asked, outcome, code=code, count=count)
            except GoQueueError as error:
                self._tell_failure(error)
                return

    def _tell_failure(self, error: GoQueueError) -> None:
        if not self._fails:
            events.error("the audit trail cannot be written", reason=str(error))
        self._fails = True

    def _append(
        self,
        asked: Asked,
        outcome: Outcome,
        *,
        change: int = NO_CHANGE,
        code: str = "",
        count: int = 1,
        request_id: str = "",
    ) -> int:
        now_ms = self._clock.now_ms()
        record = AuditRecord(
            now_ms,
            self._node_id,
            asked.principal[:TEXT_MAX],
            asked.host,
            asked.api,
            asked.operation,
            asked.resource[:TEXT_MAX],
            outcome,
            self._previous,
            asked.fields,
            code,
            count,
            change,
            asked.tenant,
            asked.is_operator,
            request_id,
        )
        value = _encode(record)
        batch = build_batch([(now_ms, None, value, [])])
        offset = self._replica.append(check_batch(memoryview(batch)), now_ms).base_offset
        self._previous = hashlib.sha256(value).hexdigest()
        self._fails = False
        return offset

    # -- reading

    async def stored_bounds(self) -> tuple[int, int]:
        """The first offset, and the one after the last, when all of it is durable. What was summed up is written
        before."""
        self.flush()
        start, end = self._replica.start_offset, self._replica.end_offset
        if end > start:
            await self._waited(lambda then: self._when_stored(end - 1, then))
        return start, end

    def hidden_offsets(self, tenant: str) -> HiddenOffsets:
        """As this tenant is told them, of the trail of this node."""
        return HiddenOffsets(hmac.digest(self._secret.reveal(), f"audit {self._node_id} {tenant}".encode(), "sha256"))

    async def page(self, first: int | None, count: int, is_told: Callable[[AuditRecord], bool]) -> AuditPage:
        """So many of those that are told: from there on, or the newest. A part of the trail is looked through, in
        turns: others want to be served, too."""
        start, end = await self.stored_bounds()
        found: list[Recorded] = []
        at, until = max(start, end - AT_ONCE if first is None else first), end
        for _ in range(LOOKED_THROUGH_MAX // AT_ONCE):
            turn = [each for each in self.read(at, AT_ONCE) if each.offset < until and is_told(each.record)]
            found = turn + found if first is None else found + turn
            if len(found) >= count or (at <= start if first is None else at + AT_ONCE >= end):
                break
            at, until = (max(start, at - AT_ONCE), at) if first is None else (at + AT_ONCE, end)
            await asyncio.sleep(0)
        else:
            if first is not None:
                return AuditPage(start, end, at, found)
        found = found[-count:] if first is None else found[:count]
        following = found[-1].offset + 1 if found else start if first is None else first
        return AuditPage(start, end, following, found)

    def read(self, first: int, count: int) -> list[Recorded]:
        """So many from there on, the oldest first."""
        found: list[Recorded] = []
        for offset, value, before in _values(self._replica, max(first - 1, self._replica.start_offset)):
            if offset >= first:
                record = _decode(value)
                found.append(Recorded(offset, record, before is None or record.previous == before))
            if len(found) == count:
                break
        return found


def _values(replica: Replica, first: int) -> Iterator[tuple[int, bytes, str | None]]:
    """Each with its offset and the hash of the one before it; None: that is not kept any more."""
    offset, before = first, None
    while offset < replica.end_offset:
        piece = replica.read(offset, READ_BYTES, replica.end_offset)
        if piece is None:
            return
        for batch in split(piece.view()):
            for record in decode(batch):
                if record.offset >= first:
                    value = record.value or b""
                    yield record.offset, value, before
                    before = hashlib.sha256(value).hexdigest()
        offset = piece.next_offset


def _last_hash(replica: Replica) -> str:
    """Of an empty trail it is that of nothing."""
    value = b""
    for _, value, _ in _values(replica, max(replica.start_offset, replica.end_offset - 1)):  # noqa: B007  the last
        pass
    return hashlib.sha256(value).hexdigest()
