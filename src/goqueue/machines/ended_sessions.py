"""Sessions that were ended before their time, as the controller keeps them: facts beside users and rules, so that every
node of a cluster knows of a log-out, and a node that was down meanwhile learns of it.
"""

from collections.abc import Iterator, Set
from typing import ClassVar

from goqueue.machines.account_result import AccountResult
from goqueue.machines.machine import Command, Fact
from goqueue.model.codes import Code
from goqueue.model.sessions import IDS_MAX, LASTS_MS, EndedSessions
from goqueue.model.tenancy import DEFAULT_TENANT, SHARE, full, tenant_named

ENDED_KEY = b"\0ended/"  # no topic can be called that
PRINCIPALS_MAX = 10_000
"""Of all tenants; each but `default` may have its share of them."""
FORGOTTEN_PER_STEP = 20
"""Of others, that are not needed any more: at most so many go with a new one."""


class EndSession(Command[AccountResult], frozen=True):
    principal: str
    session: str
    """The digest of its id; empty: all of this principal that were begun before now."""
    ends_ms: int
    """When it would have ended by itself; of all of them, the last."""
    now_ms: int


class SessionsEnded(Fact, frozen=True, tag="SessionsEnded"):
    ended: EndedSessions

    def key(self) -> bytes:
        return ENDED_KEY + self.ended.principal.encode()


class EndedForgotten(Fact, frozen=True):
    is_tombstone: ClassVar[bool] = True
    principal: str

    def key(self) -> bytes:
        return ENDED_KEY + self.principal.encode()


EndedFact = SessionsEnded | EndedForgotten


def _name(principal: str) -> str:
    return principal.partition(":")[2]


class Ended:
    def __init__(self) -> None:
        self.by_principal: dict[str, EndedSessions] = {}

    def decide(self, command: EndSession) -> tuple[list[Fact], AccountResult]:
        principal, now_ms = command.principal, command.now_ms
        over = [each.principal for each in self.by_principal.values() if each.lasts_ms <= now_ms]
        forgotten = [EndedForgotten(each) for each in over[:FORGOTTEN_PER_STEP] if each != principal]
        before = self.by_principal.get(principal)
        if before is None and (words := self._full(principal, {each.principal for each in forgotten})):
            return [], AccountResult(Code.POLICY_VIOLATION, words)
        before = before or EndedSessions(principal)
        ids = {session: ends_ms for session, ends_ms in before.ids.items() if ends_ms > now_ms}
        before_ms = before.before_ms
        if command.session:
            ids[command.session] = command.ends_ms
        if not command.session or len(ids) > IDS_MAX:
            # Clocks of nodes differ, and may be set back: none that is over comes back, nor was begun later than this.
            begun_ms = max(command.ends_ms, *ids.values(), 0) - LASTS_MS
            ids, before_ms = {}, max(now_ms, begun_ms, before_ms) + 1
        # Those that were ended together end no later than one that is begun now.
        lasts_ms = max(command.ends_ms, before.lasts_ms)
        after = EndedSessions(principal, ids, before_ms, lasts_ms)
        return [SessionsEnded(after), *forgotten], AccountResult()

    def _full(self, principal: str, forgotten: Set[str]) -> str:
        """Why nobody else's can be kept; empty: they can. A tenant takes its share, and leaves the rest to others."""
        if len(self.by_principal) - len(forgotten) >= PRINCIPALS_MAX:
            return f"sessions of {PRINCIPALS_MAX} others have been ended; try again later"
        tenant = tenant_named(_name(principal))
        if tenant == DEFAULT_TENANT:
            return ""
        most, prefix = PRINCIPALS_MAX // SHARE, full(tenant, "")
        kept = sum(1 for each in self.by_principal if each not in forgotten and _name(each).startswith(prefix))
        return f"sessions of {most} others of this tenant have been ended; try again later" if kept >= most else ""

    def apply(self, fact: EndedFact) -> None:
        match fact:
            case SessionsEnded(ended):
                self.by_principal[ended.principal] = ended
            case EndedForgotten(principal):
                self.by_principal.pop(principal, None)

    def forget(self, key: bytes) -> bool:
        """Replay of a tombstone. False: it is none of these."""
        if not key.startswith(ENDED_KEY):
            return False
        self.by_principal.pop(key.removeprefix(ENDED_KEY).decode(), None)
        return True

    def facts(self) -> Iterator[Fact]:
        yield from (SessionsEnded(each) for each in self.by_principal.values())
