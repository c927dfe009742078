"""The gate: the APIs hold it instead of the broker. Whoever comes in through it gets an access, and with that a view of
the broker for each operation.
"""

import asyncio
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from goqueue.broker.accounts.credentials import Credentials
from goqueue.broker.accounts.logins import Logins, NotAuthenticated, OnLogin, Principal, WrongSignature
from goqueue.broker.accounts.quotas import Allowance, Quotas
from goqueue.broker.broker import Broker
from goqueue.broker.view.scope import Scope
from goqueue.broker.view.view import View
from goqueue.model.access import ANY_HOST, OPEN, AllRights, Kind, NoRights, Operation, Permission, Rights
from goqueue.model.accounts import ANONYMOUS, KEY, USER, ApiKey, User, is_key_id
from goqueue.model.grants import Grants
from goqueue.model.listener import Connected
from goqueue.model.placements import HostPort
from goqueue.model.topics import TopicsChange
from goqueue.ports.dice import Dice
from goqueue.ports.forwarding import Forwarding
from goqueue.runtime.clock import Clock
from goqueue.telemetry.calls import call_each
from goqueue.telemetry.meters import Meters

__all__ = ["Access", "Allowance", "Credentials", "Gate", "NotAuthenticated", "Principal", "WrongSignature"]

ACCESSES_MAX = 1000
"""That are kept while nobody uses them."""


class Access:
    """What one principal may do: one for each of them, whatever they come through."""

    def __init__(
        self,
        broker: Broker,
        principal: str,
        rights: Rights,
        quotas: Quotas,
        host: str = "",
        *,
        is_stored: bool = False,
    ) -> None:
        self._broker = broker
        self._quotas = quotas
        self.principal = principal
        self.host = host
        self.is_stored = is_stored
        """A user or a key; a certificate may name others."""
        self._rights = rights
        self._views: dict[Permission, View] = {}
        """Bounded: permissions stand in the tables of operations."""
        self.is_over = False
        """There is no such user or key any more."""
        self.kept: dict[str, Any] = {}
        """What APIs remember for this access: gone when the rights change."""

    def view(self, permission: Permission) -> View:
        """The broker for one operation. Raises where that needs a right on the cluster and there is none."""
        found = self._views.get(permission)
        if found is None:
            if self.is_over and permission is not OPEN:
                raise NotAuthenticated(f"{self.principal} is gone")
            found = self._views[permission] = View(self._broker, Scope(permission, self._rights))
        return found

    def allowance(self, client_id: str) -> Allowance | None:
        """How much of it, for a client that calls itself so. None: there is no limit."""
        quotas = self._quotas
        return quotas.of(self.principal.partition(":")[2], client_id) if quotas.are_set else None

    def renew(self, rights: Rights, *, is_over: bool) -> None:
        """Whoever reads messages meets the new rights in the middle of it: fetches that wait, long polls, streams.
        Others finish what they have begun: one may have taken its own rights away, and is answered."""
        self._rights, self.is_over = rights, is_over
        for permission, view in self._views.items():
            if Operation.READ in permission.needs.get(Kind.TOPIC, ()):
                view.renew(rights)
        self._views.clear()
        self.kept.clear()


class Gate:
    def __init__(
        self,
        broker: Broker,
        rights: Rights | None = None,
        forwarding: Forwarding | None = None,
        logins: Logins | None = None,
        *,
        is_closed: bool = False,
    ) -> None:
        """Without `logins` whoever comes in has these rights. `is_closed`: everybody has to show who they are, on every
        listener."""
        self._is_closed = is_closed
        self.forwarding = forwarding
        """The way to other nodes, in a cluster."""
        self._broker = broker
        self._topics = broker.topics
        self.logins = logins
        self.quotas = Quotas(broker.clock.monotonic_s, broker.metrics.meters.throttled)
        self._trusted = Access(broker, ANONYMOUS, rights or AllRights(), self.quotas)
        self._nobody = Access(broker, ANONYMOUS, NoRights(), self.quotas)
        self._accesses: dict[tuple[str, str], Access] = {}
        """By principal and host; the last used last."""
        self._alive: WeakSet[Access] = WeakSet()
        self._revision = -1
        self._has_hosts = False
        """Some rule is about an address: then what a principal may do depends on its own."""
        self.on_change: list[Callable[[], None]] = []
        """Called when accesses may have other rights, or be over."""
        broker.accounts.on_change.append(self._changed)
        self._changed()
        self.clock: Clock = broker.clock
        self.dice: Dice = broker.dice
        self.meters: Meters = broker.metrics.meters

    @classmethod
    def trusted(cls, broker: Broker, forwarding: Forwarding | None = None) -> "Gate":
        """For a broker inside a test or an application: whoever can call it may do everything."""
        return cls(broker, AllRights(), forwarding)

    def grpc_address(self, node_id: int) -> HostPort | None:
        """Where a node offers gRPC; None: it is not there, or does not."""
        node = self._topics.image.nodes.get(node_id)
        return None if node is None else node.grpc

    def partitions(self, topic: str) -> int:
        """0: there is no such topic."""
        found = self._topics.image.topics.get(topic)
        return 0 if found is None else found.partitions

    def when_topics_change(self, call: Callable[[TopicsChange], None]) -> None:
        self._topics.on_change.append(call)

    # -- who comes in

    def nobody(self) -> Access:
        """For what is open to all."""
        return self._nobody

    def needs_credentials(self, connected: Connected) -> bool:
        """Whoever has connected there has to show more before it may do anything."""
        return self.logins is not None and connected.principal is None and self._requires(connected)

    def is_stranger(self, credentials: Credentials) -> bool:
        """Whoever asks has shown nothing, where something has to be shown."""
        has_shown = credentials.key or credentials.basic or credentials.principal is not None
        return not has_shown and self.needs_credentials(credentials.connected)

    def _requires(self, connected: Connected) -> bool:
        return self._is_closed or connected.listener.requires_authentication

    def admit(self, credentials: Credentials) -> Access:
        """NotAuthenticated: more has to be shown, or what was shown is wrong."""
        connected = credentials.connected
        if self.logins is None:
            return self._trusted
        if credentials.principal is not None:
            return self._said(credentials.principal)
        if credentials.key:
            return self.access(self.logins.key(credentials.key, host_of(connected.peer)), connected)
        if connected.principal is not None:
            return self.access(Principal(connected.principal), connected)
        if self._requires(connected):
            raise NotAuthenticated
        return self._trusted

    async def admit_request(self, credentials: Credentials) -> Access:
        """For APIs whose credentials come with each request. NotAuthenticated is raised a little later than it is
        known: who guesses has to wait."""
        try:
            if credentials.basic and not credentials.key and self.logins is not None:
                return self.access(await self._logged_in(credentials), credentials.connected)
            return self.admit(credentials)
        except NotAuthenticated:
            assert self.logins is not None
            await self.pause(self.logins.delay_ms)
            raise

    async def admit_signed(self, credentials: Credentials, key_id: str, is_signed: Callable[[str], bool]) -> Access:
        """Of whoever has signed a request with the secret of a key. Where nobody has to show anything, other names than
        those of keys say nothing."""
        connected = credentials.connected
        if self.logins is None or not (is_key_id(key_id) or self.needs_credentials(connected)):
            return self.admit(credentials)
        try:
            return self.access(self.logins.signed(key_id, host_of(connected.peer), is_signed), connected)
        except NotAuthenticated:
            await self.pause(self.logins.delay_ms)
            raise

    async def _logged_in(self, credentials: Credentials) -> Principal:
        name, password = credentials.name_and_password()
        done: asyncio.Future[Principal | NotAuthenticated] = asyncio.get_running_loop().create_future()

        def logged_in(found: Principal | NotAuthenticated) -> None:
            if not done.done():  # who asked may have gone meanwhile
                done.set_result(found)

        self.log_in(name, password, credentials.connected, logged_in)
        found = await done
        if isinstance(found, NotAuthenticated):
            raise found
        return found

    async def pause(self, delay_ms: int) -> None:
        over = asyncio.Event()
        timer = self.clock.call_after(delay_ms, over.set)
        try:
            await over.wait()
        finally:
            timer.cancel()

    def _said(self, principal: str) -> Access:
        """By another node. Whoever it let in without a name is let in here."""
        if not principal:
            raise NotAuthenticated("the node that passed this on did not say who asks")
        return self._trusted if principal == ANONYMOUS else self._access(principal, "")

    def access(self, principal: Principal, connected: Connected) -> Access:
        """Of somebody who has shown who they are."""
        return self._access(principal.name, host_of(connected.peer))

    def log_in(self, name: str, password: str, connected: Connected, on_login: OnLogin) -> None:
        assert self.logins is not None
        self.logins.password(name, password, host_of(connected.peer), on_login)

    def _access(self, principal: str, host: str) -> Access:
        key = principal, host if self._has_hosts else ""
        found = self._accesses.pop(key, None)
        if found is None:
            account = self._account(principal)
            rights = self._rights(*key)
            found = Access(self._broker, principal, rights, self.quotas, key[1], is_stored=account is not None)
            self._alive.add(found)
        self._accesses[key] = found
        if len(self._accesses) > ACCESSES_MAX:
            del self._accesses[next(iter(self._accesses))]
        return found

    def _account(self, principal: str) -> User | ApiKey | None:
        image = self._broker.accounts.image
        kind, _, name = principal.partition(":")
        return image.users.get(name) if kind == USER else image.keys.get(name) if kind == KEY else None

    def _rights(self, principal: str, host: str) -> Rights:
        account = self._account(principal)
        rules = self._broker.accounts.image.rules.values()
        return Grants(principal, host, () if account is None else account.roles, rules)

    def _changed(self) -> None:
        image = self._broker.accounts.image
        if image.revision == self._revision:
            return
        self._revision = image.revision
        self._has_hosts = any(rule.host != ANY_HOST for rule in image.rules.values())
        self.quotas.renew(image)
        self._trusted.kept.clear()
        self._accesses.clear()
        for access in list(self._alive):
            is_over = access.is_stored and self._account(access.principal) is None
            rights = NoRights() if is_over else self._rights(access.principal, access.host)
            access.renew(rights, is_over=access.is_over or is_over)
        call_each(self.on_change)


def host_of(peer: str) -> str:
    """Of `host:port`."""
    return peer.rpartition(":")[0]
