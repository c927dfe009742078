"""What a handler of sessions is given beside its call: who asks, through what, and how sessions begin and end."""

import asyncio
import base64
from dataclasses import dataclass
from typing import Any

from goqueue.broker.access import Access
from goqueue.broker.accounts.logins import Logins
from goqueue.broker.gate import Gate, host_of
from goqueue.doors.http.asgi import CONNECTED
from goqueue.doors.http.errors import NOT_FOUND, HttpError
from goqueue.model.credentials import Credentials, NotAuthenticated, Principal
from goqueue.model.listener import IN_PROCESS, Connected
from goqueue.model.secret import Secret
from goqueue.wire.asgi import Scope


@dataclass(frozen=True)
class Visit:
    gate: Gate
    access: Access
    scope: Scope

    @property
    def connected(self) -> Connected:
        found: Connected = self.scope.get("state", {}).get(CONNECTED, IN_PROCESS)
        return found

    @property
    def logins(self) -> Logins:
        if self.gate.logins is None:
            raise HttpError(NOT_FOUND, "NO_ACCOUNTS", "this node knows no accounts, so nobody logs in")
        return self.gate.logins

    async def begin(self, user: str, password: str) -> Access:
        assert self.logins is not None
        basic = base64.b64encode(f"{user}:{password}".encode()).decode()
        shown = Credentials("http", self.connected.peer, self.connected, basic=Secret(basic))
        return await self.gate.begin_session(shown)

    async def finish(self, begun: Any, code: str) -> Access:
        """Of somebody who comes back from the issuer with a code."""
        flow = self.logins.code_flow
        assert flow is not None
        done: asyncio.Future[Principal | NotAuthenticated] = asyncio.get_running_loop().create_future()
        flow.finish(
            begun, code, host_of(self.connected.peer), lambda found: None if done.done() else done.set_result(found)
        )
        found = await done
        if isinstance(found, NotAuthenticated):
            raise found
        return self.gate.start_session(found, self.connected)
