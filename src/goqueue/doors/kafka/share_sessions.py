"""Share sessions: which partitions a member reads, said once and then only changed, and what it holds of them.

A session ends with its connection: what its member holds is then delivered to others at once. After an orderly close
that is as if it had never been delivered; after a lost connection it counts as an attempt, since a record that kills
its consumers must come to an end.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from goqueue.broker.queues.consumer_leases import ConsumerLeases
from goqueue.broker.view.view import View
from goqueue.doors.kafka.connection import Connection
from goqueue.machines.deliveries.commands import How
from goqueue.model.access import Kind
from goqueue.model.codes import Code
from goqueue.model.refusal import Refused
from goqueue.model.tenancy import Tenant, TenantLimit, tenant_said
from goqueue.wire.kafka.notation import INT32_MAX

OPEN_EPOCH, CLOSE_EPOCH = 0, -1
SESSIONS_MAX = 10_000
PARTITIONS_MAX = 50_000
"""In one session."""

TopicIdPartition = tuple[bytes, int]


class Unanswered(Protocol):
    """A fetch of a session."""

    def hurry(self) -> None:
        """It need not wait for records any longer, and is answered with what there is."""

    def end(self) -> None:
        """Its session is over."""


class ShareSession:
    def __init__(self, connection: Connection, group_id: str, leases: ConsumerLeases, key: tuple[str, str]) -> None:
        """`key`: the group as it is kept, and the member."""
        self.key = key
        self.connection = connection
        self.group_id = group_id
        self.member_id = key[1]
        self.leases = leases
        self.epoch = OPEN_EPOCH + 1
        """What the next request must say."""
        self.partitions: dict[TopicIdPartition, None] = {}
        self.told_errors: frozenset[TopicIdPartition] = frozenset()
        """Those of the partitions that cannot be read, as the member knows."""
        self.is_over = False
        self._unanswered: Unanswered | None = None
        """The last fetch. Those before it are answered, or will be as soon as what they acknowledge is durable."""

    def change(self, added: Iterable[TopicIdPartition], forgotten: Iterable[TopicIdPartition]) -> None:
        for each in added:
            self.partitions[each] = None
        for each in forgotten:
            self.partitions.pop(each, None)
        if len(self.partitions) > PARTITIONS_MAX:
            raise Refused(Code.INVALID_REQUEST, f"a session may have {PARTITIONS_MAX} partitions")

    def began(self, fetch: Unanswered) -> None:
        """Answers leave in the order of their requests: one before it that waits for records would keep it waiting."""
        if self._unanswered is not None:
            self._unanswered.hurry()
        self._unanswered = fetch

    def answered(self, fetch: Unanswered) -> None:
        if self._unanswered is fetch:
            self._unanswered = None

    def hurry(self) -> None:
        if self._unanswered is not None:
            self._unanswered.hurry()

    def end(self) -> None:
        self.is_over = True
        if self._unanswered is not None:
            self._unanswered.end()


class ShareSessions:
    """Invariant: `_by_connection` has the sessions of `_by_member`, each under the connection it was used on last."""

    def __init__(self, sessions_max: int = SESSIONS_MAX, tenants: Callable[[], Mapping[str, Tenant]] = dict) -> None:
        self._sessions_max = sessions_max
        self._tenants = tenants
        self._counts: Counter[str] = Counter()
        """By tenant, or what looks like one."""
        self._by_member: dict[tuple[str, str], ShareSession] = {}
        self._by_connection: dict[Connection, dict[ShareSession, None]] = {}

    def enter(self, broker: View, connection: Connection, group_id: str, member_id: str, epoch: int) -> ShareSession:
        """The session that a request belongs to, opened if that is what it asks for. Refused: it has none, or may not
        read on behalf of the group. Another tenant may have a group and a member with the same names."""
        key = broker.admit(Kind.GROUP, group_id), member_id
        found = self._by_member.get(key)
        if epoch == OPEN_EPOCH:
            leases = found.leases if found else broker.leases_of(group_id, member_id)
            return self._open(ShareSession(connection, group_id, leases, key), found)
        if found is None:
            raise Refused(Code.SHARE_SESSION_NOT_FOUND, f"member {member_id!r} has no session")
        if epoch != CLOSE_EPOCH:
            if epoch != found.epoch:
                raise Refused(Code.INVALID_SHARE_SESSION_EPOCH, f"epoch {epoch} is not {found.epoch}")
            found.epoch = found.epoch + 1 if found.epoch < INT32_MAX else OPEN_EPOCH + 1
        if found.connection is not connection:
            self._unbind(found)
            found.connection = connection
            self._by_connection.setdefault(connection, {})[found] = None
        return found

    def _open(self, session: ShareSession, before: ShareSession | None) -> ShareSession:
        """A member that opens another session starts over with what it reads, not with what it holds."""
        if before is not None:
            self._remove(before)
        elif len(self._by_member) >= self._sessions_max:
            raise Refused(Code.SHARE_SESSION_LIMIT_REACHED, f"there are {self._sessions_max} sessions")
        else:
            self._check_share(session.key[0])
        self._by_member[session.key] = session
        self._counts[tenant_said(session.key[0])] += 1
        self._by_connection.setdefault(session.connection, {})[session] = None
        return session

    def _check_share(self, group: str) -> None:
        tenant = self._tenants().get(tenant_said(group))
        if tenant is not None:
            most = tenant.most(TenantLimit.SHARE_SESSIONS, self._sessions_max)
            if self._counts[tenant.tenant_id] >= most:
                words = tenant.full_words(TenantLimit.SHARE_SESSIONS, self._sessions_max)
                raise Refused(Code.SHARE_SESSION_LIMIT_REACHED, words)

    def close(self, session: ShareSession) -> None:
        """Its member is done."""
        if not session.is_over:
            self._remove(session)
            session.leases.give_back(How.UNDO)

    def lost(self, connection: Connection) -> None:
        for session in list(self._by_connection.get(connection, ())):
            self._remove(session)
            session.leases.give_back(How.RETRY)

    def _remove(self, session: ShareSession) -> None:
        del self._by_member[session.key]
        self._counts[tenant_said(session.key[0])] -= 1
        self._unbind(session)
        session.end()

    def _unbind(self, session: ShareSession) -> None:
        bound = self._by_connection[session.connection]
        del bound[session]
        if not bound:
            del self._by_connection[session.connection]
