"""Tenants take turns, not connections: one with many that are always busy would have as many turns as connections, and
all others would wait for each of them. So of a tenant that takes more than its part of the event loop's time, one
request is begun in a turn of the loop, or as many as take a millisecond, and the others wait in line, whichever API
they came through. Nothing is lost by it: a loop that has nothing else to do begins its next turn at once.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Mapping
from functools import partial
from typing import Any, TypeVar

from goqueue.broker.accounts.loop_time import Steps, awaited
from goqueue.model.tenancy import Tenant
from goqueue.runtime.clock import Clock

T = TypeVar("T")

WINDOW_S = 0.1
PARTS = 4
"""Among so many tenants the time is shared out at least, or among as many as are there."""

FREE_TURNS = 3
"""Where others are, so many turns of the loop are theirs after each request of a heavy tenant: a request over HTTP
takes two from its arrival to its beginning."""
FREE_TURNS_MAX = 11
"""Those may become more while somebody else begins something in each of them; not for ever."""
ALONE = 32
"""After so many turns while nobody else begins anything, there are no such turns until somebody does."""
SLICE_S = 0.001
"""As many requests of a heavy tenant are begun in its turn as take so long, and one at least: to do several at once
costs less."""
SHARED_S = 10.0
"""A node that only one tenant has used for so long is its own: nobody waits there."""
REMEMBERED = 64
"""Requests, by which it is known how long one takes."""

Go = Callable[[], None]


class Line:
    """Of a heavy tenant."""

    __slots__ = ("alone", "begun", "free_turns", "let_go", "others", "used_s", "waiting")

    def __init__(self) -> None:
        self.waiting: OrderedDict[Hashable, Go] = OrderedDict()
        """The first first. Bounded by the connections that a tenant may have."""
        self.free_turns = 0
        """Since one of it has begun."""
        self.others = 0
        """What others had begun, a turn ago."""
        self.alone = 0
        """Turns since then."""
        self.begun, self.used_s = 1, SLICE_S
        """How many requests took so long."""
        self.let_go = 0
        """In the last turn: what they take is not known yet."""

    def turn(self) -> None:
        """Let those go that are next."""
        self.begun += self.let_go
        if self.begun > REMEMBERED:
            self.begun, self.used_s = self.begun // 2, self.used_s / 2
        count = max(1, int(SLICE_S * self.begun / self.used_s))
        self.free_turns, self.let_go = 0, min(count, len(self.waiting))
        self.alone += 1
        for _ in range(self.let_go):
            if self.waiting:  # one may take others along when it goes
                _, go = self.waiting.popitem(last=False)
                go()


class Turns:
    """One for a node: what a tenant uses through one API counts for all."""

    def __init__(self, clock: Clock) -> None:
        self.are_taken = False
        """There are others than the default one. Where there are not, nobody looks at a clock."""
        self.now_s = clock.monotonic_s
        self._call_soon = clock.call_soon
        self._spent: dict[str, float] = {}
        self._before: dict[str, float] = {}
        """Seconds of each tenant, in this window and in the last one."""
        self._tenants = 0
        """In either of them."""
        self._shared_until_s = 0.0
        self._began_s = self.now_s()
        self._begun = 0
        """Requests that did not have to wait."""
        self._lines: dict[str, Line] = {}
        """By tenant, for those of which one has begun: who waits for the next turns. Of each there is a call to `_next`
        under way."""

    def renew(self, tenants: Mapping[str, Tenant]) -> None:
        self.are_taken = bool(tenants)

    def spend(self, tenant: str, seconds: float, now_s: float) -> None:
        if now_s - self._began_s >= WINDOW_S:
            self._open_window(now_s)
        spent = self._spent
        if tenant in spent:
            spent[tenant] += seconds
        else:
            spent[tenant] = seconds
            self._tenants += tenant not in self._before
            if self._tenants > 1:
                self._shared_until_s = now_s + SHARED_S
        if tenant in self._lines:
            self._lines[tenant].used_s += seconds

    def _open_window(self, now_s: float) -> None:
        is_next = now_s - self._began_s < 2 * WINDOW_S
        self._before = self._spent if is_next else {}
        self._spent = {}
        self._tenants = len(self._before)
        self._began_s = now_s

    def is_heavy(self, tenant: str, now_s: float) -> bool:
        """Whether it has had more than its part of the time."""
        if now_s - self._began_s >= WINDOW_S:
            self._open_window(now_s)
        used_s = self._spent.get(tenant, 0.0) + self._before.get(tenant, 0.0)
        return used_s * max(PARTS, self._tenants) > WINDOW_S + (now_s - self._began_s)

    def may_begin(self, tenant: str, now_s: float) -> bool:
        """Whether one more of it is begun in this turn; if so, it is. False: to `line_up`."""
        if tenant in self._lines:
            return False
        if now_s < self._shared_until_s and self.is_heavy(tenant, now_s):
            self._lines[tenant] = Line()
            self._call_soon(partial(self._next, tenant))
        self._begun += 1
        return True

    def line_up(self, tenant: str, who: Hashable, go: Go) -> None:
        self._lines[tenant].waiting[who] = go

    def leave(self, tenant: str, who: Hashable) -> None:
        """Nothing happens if it is not in line."""
        line = self._lines.get(tenant)
        if line is not None:
            line.waiting.pop(who, None)

    def waiting(self, tenant: str) -> int:
        return len(self._lines[tenant].waiting) if tenant in self._lines else 0

    def _next(self, tenant: str) -> None:
        """A turn of the loop later."""
        line = self._lines[tenant]
        if self._is_of_others(line):
            self._call_soon(partial(self._next, tenant))
        elif line.waiting:
            self._call_soon(partial(self._next, tenant))
            line.turn()
        else:
            del self._lines[tenant]

    def _is_of_others(self, line: Line) -> bool:
        """This turn."""
        is_shared = line.others != self._begun
        if is_shared:
            line.others, line.alone = self._begun, 0
        line.free_turns += 1
        if line.free_turns <= FREE_TURNS:
            return line.alone < ALONE
        return is_shared and line.free_turns <= FREE_TURNS_MAX

    # -- requests that are tasks of their own

    def request(self) -> "Turn | None":
        """For one whose tenant is not known yet. None: nobody takes turns."""
        return Turn(self) if self.are_taken else None

    async def of(self, tenant: str, work: Callable[[], Awaitable[T]]) -> T:
        """What a tenant asks for, begun in its turn."""
        if not self.are_taken:
            return await work()
        turn = Turn(self)
        await turn.begin(tenant)
        return await turn.timed(awaited(work()))


class Turn:
    """Of one request: the time that its steps take of the event loop is its tenant's, from the first of them."""

    __slots__ = ("_spent_s", "_tenant", "_turns", "_waits")

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._tenant = ""
        self._spent_s = 0.0
        """Before the tenant was known."""
        self._waits: asyncio.Future[bool] | None = None

    def begin(self, tenant: str) -> Coroutine[Any, Any, bool]:
        """Returns when it may begin. False: it was told to leave."""
        self._tenant = tenant
        return self.again()

    async def again(self) -> bool:
        """The same for each further part of a stream."""
        turns, tenant = self._turns, self._tenant
        if turns.may_begin(tenant, turns.now_s()):
            return True
        waits: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waits = waits
        turns.line_up(tenant, self, partial(_answer, waits, True))
        try:
            return await waits
        finally:
            self._waits = None
            turns.leave(tenant, self)  # if it was cancelled

    def leave(self) -> None:
        """If it waits: its client is gone."""
        if self._waits is not None:
            _answer(self._waits, False)

    async def timed(self, work: Coroutine[Any, Any, T]) -> T:
        return await Steps(work, self._turns.now_s, self._spent)

    def _spent(self, began_s: float, ended_s: float) -> None:
        spent_s = ended_s - began_s
        if self._tenant:
            self._turns.spend(self._tenant, self._spent_s + spent_s, ended_s)
            self._spent_s = 0.0
        else:
            self._spent_s += spent_s


def _answer(waits: "asyncio.Future[bool]", may_begin: bool) -> None:
    if not waits.done():
        waits.set_result(may_begin)
