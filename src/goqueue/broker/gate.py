"""The gate: the APIs hold it instead of the broker. Whoever comes in through it gets an access, and with that a view of
the broker for each operation.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from weakref import ReferenceType, WeakSet, finalize, ref

import msgspec

from goqueue.broker.access import Access
from goqueue.broker.accounts.accounts import OnReply
from goqueue.broker.accounts.audit import Audit
from goqueue.broker.accounts.logins import Logins
from goqueue.broker.accounts.quotas import Quotas
from goqueue.broker.broker import Broker
from goqueue.broker.readings import Readings
from goqueue.broker.tenants.belonging import account_of, home_of, is_shut, may_act_for, rights_of, trusted_rights
from goqueue.broker.tenants.owners import read_told
from goqueue.model.access import ANY_HOST, AllRights, NoRights, Permission, Rights
from goqueue.model.accounts import ANONYMOUS, is_key_id
from goqueue.model.audit import Asked, Outcome
from goqueue.model.codes import Code
from goqueue.model.credentials import AccessTooOld, Credentials, NotAuthenticated, OnLogin, Principal, SessionOver
from goqueue.model.listener import Connected
from goqueue.model.refusal import Refused
from goqueue.model.secret import Secret
from goqueue.model.sessions import Session
from goqueue.model.tenancy import DEFAULT_TENANT, Tenancy, tenant_of
from goqueue.model.topics import TopicsChange
from goqueue.ports.dice import Dice
from goqueue.ports.forwarding import Forwarding
from goqueue.runtime.clock import Clock
from goqueue.telemetry.calls import call_each
from goqueue.telemetry.meters import Meters

NOBODY = ""
"""Of who has shown nothing where something has to be shown. Another node that is told this lets nobody in."""
ACCESSES_MAX = 1000
"""That are kept while nobody uses them."""
LOGIN, LOG_IN, LOG_OUT = "login", "log_in", "log_out"
"""In the audit trail. The others are of sessions: they are always noted."""


class Gate:
    def __init__(
        self,
        broker: Broker,
        rights: Rights | None = None,
        forwarding: Forwarding | None = None,
        logins: Logins | None = None,
        *,
        is_closed: bool = False,
        access_age_ms_max: int = 0,
    ) -> None:
        """Without `logins` whoever comes in has these rights. `is_closed`: everybody has to show who they are, on every
        listener. `access_age_ms_max`: nobody is let in by users, keys and rules that are older; 0: by any."""
        self._is_closed = is_closed
        self._access_age_s_max = access_age_ms_max / 1000
        self.forwarding = forwarding
        """The way to other nodes, in a cluster."""
        self._broker = broker
        self._topics = broker.topics
        self.logins = logins
        self.now_s = broker.clock.monotonic_s
        self.quotas = Quotas(self.now_s, broker.metrics.meters.throttled)
        self._given = rights or AllRights()
        self._trusted: dict[str, Access] = {}
        """Of those who come in without showing anything, by the tenant that they say they act for."""
        self._nobody = Access(broker, NOBODY, NoRights(), self.quotas)
        self._accesses: dict[tuple[Principal, str, str, str], Access] = {}
        """By what was shown, host, tenant and session; the last used last."""
        self._alive: WeakSet[Access] = WeakSet()
        self._revision = -1
        self._has_hosts = False
        """Some rule is about an address: then what a principal may do depends on its own."""
        self.tenants = broker.tenants.all
        self.turns = broker.tenants.turns
        broker.sender.charges_time = lambda: self.turns.are_taken or self.quotas.are_set
        self.readings = Readings(broker)
        self.on_change: list[Callable[[], None]] = []
        """Called when accesses may have other rights, or be over."""
        if broker.audit is not None and logins is not None:
            logins.on_failed = partial(self._note_failure, broker.audit)
        broker.accounts.on_change.append(self._changed)
        self._changed()
        self.clock: Clock = broker.clock
        self.dice: Dice = broker.dice
        self.meters: Meters = broker.metrics.meters

    def enter(self, tenant: str) -> Callable[[], None] | None:
        """Somebody takes a connection of a tenant, and leaves by what is returned. QuotaExceeded: there is none."""
        return self._broker.tenants.seats.enter(tenant)

    @classmethod
    def trusted(cls, broker: Broker, forwarding: Forwarding | None = None) -> "Gate":
        """For a broker inside a test or an application: whoever can call it may do everything."""
        return cls(broker, AllRights(), forwarding)

    def partitions(self, topic: str) -> int:
        """0: there is no such topic."""
        found = self._topics.image.topics.get(topic)
        return 0 if found is None else found.partitions

    def when_topics_change(self, call: Callable[[TopicsChange], None]) -> None:
        self._topics.on_change.append(call)

    def audited(self, permission: Permission, *, is_person: bool = False) -> Audit | None:
        """Where a request is to be written down before it is carried out: it changes something. Of a person with a
        browser everything is that is not a look."""
        audit = self._broker.audit
        return audit if permission.is_change or is_person else None

    def note(self, access: Access, permission: Permission, api: str, operation: str) -> None:
        """A request that changes nothing, where such are noted."""
        audit = self._broker.audit
        if audit is not None and audit.is_noted(access.principal, permission):
            audit.note(access.asked(access.host, api, operation))

    # -- who comes in

    def nobody(self) -> Access:
        """For what is open to all."""
        return self._nobody

    def needs_credentials(self, connected: Connected) -> bool:
        """Whoever has connected there has to show more before it may do anything."""
        return self.logins is not None and connected.principal is None and self._requires(connected)

    def is_stranger(self, credentials: Credentials) -> bool:
        """Whoever asks has shown nothing, where something has to be shown."""
        shown, said = (credentials.key, credentials.basic, credentials.session), credentials.principal
        has_shown = any(shown) or said is not None
        return not has_shown and self.needs_credentials(credentials.connected)

    def _requires(self, connected: Connected) -> bool:
        return self._is_closed or connected.listener.requires_authentication

    def admit(self, credentials: Credentials) -> Access:
        """NotAuthenticated: more has to be shown, or what was shown is wrong."""
        connected = credentials.connected
        if self.logins is None:
            return self.trusted_in(credentials.tenant)
        if credentials.principal is not None:
            return self._said(credentials.principal, credentials.peer)
        if credentials.key:
            found = self.logins.key(credentials.key.reveal(), host_of(connected.peer))
            return self.access(found, connected, credentials.tenant)
        if credentials.session is not None:
            return self._in_session(credentials.session, host_of(connected.peer), credentials.tenant)
        if connected.principal is not None:
            return self.access(Principal(connected.principal), connected, credentials.tenant)
        if self._requires(connected):
            raise NotAuthenticated
        return self.trusted_in(credentials.tenant)

    async def admit_request(self, credentials: Credentials) -> Access:
        """For APIs whose credentials come with each request. NotAuthenticated is raised a little later than it is
        known: who guesses has to wait."""
        try:
            if self.logins is not None and credentials.principal is None and (credentials.key or credentials.basic):
                return self.access(await self._logged_in(credentials), credentials.connected, credentials.tenant)
            return self.admit(credentials)
        except NotAuthenticated:
            assert self.logins is not None
            await self.pause(self.logins.delay_ms)
            raise

    async def admit_signed(
        self, credentials: Credentials, key_id: str, is_signed: Callable[[Secret[str]], bool]
    ) -> Access:
        """Of whoever has signed a request with the secret of a key. Where nobody has to show anything, other names than
        those of keys say nothing."""
        connected = credentials.connected
        if self.logins is None or not (is_key_id(key_id) or self.needs_credentials(connected)):
            return self.admit(credentials)
        try:
            found = self.logins.signed(key_id, host_of(connected.peer), is_signed)
            return self.access(found, connected, credentials.tenant)
        except NotAuthenticated:
            await self.pause(self.logins.delay_ms)
            raise

    async def _logged_in(self, credentials: Credentials) -> Principal:
        done: asyncio.Future[Principal | NotAuthenticated] = asyncio.get_running_loop().create_future()

        def logged_in(found: Principal | NotAuthenticated) -> None:
            if not done.done():  # who asked may have gone meanwhile
                done.set_result(found)

        if credentials.key:
            self.bearer(credentials.key.reveal(), credentials.connected, logged_in)
        else:
            self.log_in(*credentials.name_and_password(), credentials.connected, logged_in)
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

    def _said(self, said: str, peer: str) -> Access:
        """By another node. Whoever it let in without a name is let in here."""
        if not said:
            raise NotAuthenticated("the node that passed this on did not say who asks")
        acts, principal = read_told(said)
        if principal.name == ANONYMOUS:
            return self.trusted_in(acts)
        return self._access(principal, host_of(peer), acts)

    def access(self, principal: Principal, connected: Connected, tenant: str = "") -> Access:
        """Of somebody who has shown who they are; `tenant`: the one that they say they act for. It is over when what
        they have shown ends."""
        if principal.name == ANONYMOUS:  # other nodes would take it for one of those whom an open node lets in
            raise NotAuthenticated(f"{ANONYMOUS} is nobody in particular")
        self._check_age()
        audit, host = self._broker.audit, host_of(connected.peer)
        if audit is not None and audit.notes_logins:
            audit.note(self._access(principal, host, tenant).asked(host, "", LOGIN))
        return self._access(principal, host, tenant)

    def _check_age(self) -> None:
        if self._access_age_s_max and (age_s := self._broker.health.cluster.access_age_s()) > self._access_age_s_max:
            raise AccessTooOld(age_s)

    # -- sessions of browsers

    async def begin_session(self, credentials: Credentials) -> Access:
        """Of whoever shows a name and a password. NotAuthenticated is raised a little later than it is known."""
        try:
            if is_key_id(credentials.name_and_password()[0]):
                raise NotAuthenticated("a session is begun with the password of a user, not with a key")
            return self.start_session(await self._logged_in(credentials), credentials.connected, by_password=True)
        except NotAuthenticated:
            assert self.logins is not None
            await self.pause(self.logins.delay_ms)
            raise

    def start_session(self, principal: Principal, connected: Connected, *, by_password: bool = False) -> Access:
        """Of somebody who has shown who they are."""
        assert self.logins is not None
        session, host = self.logins.sessions.begin(principal, by_password=by_password), host_of(connected.peer)
        found = self._in_session(session, host, "")
        self._note_session(found, host, LOG_IN)
        return found

    def end_session(self, session: Session, connected: Connected, on_reply: OnReply[None], *, is_all: bool) -> None:
        assert self.logins is not None
        host = host_of(connected.peer)
        self._note_session(self._in_session(session, host, ""), host, LOG_OUT)
        self.logins.sessions.end(session, on_reply, is_all=is_all)

    def _note_session(self, access: Access, host: str, operation: str) -> None:
        if self._broker.audit is not None:
            self._broker.audit.note(access.asked(host, "http", operation))

    def _in_session(self, session: Session, host: str, tenant: str) -> Access:
        assert self.logins is not None
        self._check_age()  # it may have been ended meanwhile
        if self.logins.sessions.is_over(session):
            raise SessionOver
        used = msgspec.structs.replace(session, seen_ms=self.clock.now_ms())
        found = self._access(Principal(used.principal, used.idle_ms, used.roles), host, tenant, used)
        found.session, found.ends_ms = used, used.idle_ms
        return found

    def _note_failure(self, audit: Audit, host: str, name: str) -> None:
        """A tenant is told of those who tried a name of its own, or a key."""
        image = self._broker.accounts.image
        key = image.keys.get(name)
        tenant = tenant_of(name, image.tenants) if key is None else key.tenant
        audit.note(Asked(name, host, "", LOGIN, tenant=tenant), Outcome.FAILED)

    def bearer(self, text: str, connected: Connected, on_login: OnLogin) -> None:
        assert self.logins is not None
        self.logins.bearer(text, host_of(connected.peer), on_login)

    def access_now(self, access: Access, connected: Connected) -> Access:
        """Of a connection that has had this one: what it may do may depend on its address since."""
        if not self._has_hosts or access.host or access.principal in (ANONYMOUS, NOBODY):
            return access
        try:
            shown = Principal(access.principal, roles=access.roles)
            return self._access(shown, host_of(connected.peer), access.tenancy.tenant)
        except Refused:  # its tenant is closed: the access it has is of no use either
            return access

    def log_in(self, name: str, password: str, connected: Connected, on_login: OnLogin) -> None:
        assert self.logins is not None
        self.logins.password(name, password, host_of(connected.peer), on_login)

    def trusted_in(self, tenant: str) -> Access:
        """Of whoever comes in without showing anything."""
        tenant = tenant or DEFAULT_TENANT
        found = self._trusted.get(tenant)
        if found is None:
            image = self._broker.accounts.image
            self._check_acting(DEFAULT_TENANT, tenant, self._given)
            rights, tenancy = trusted_rights(image, tenant, self._given), Tenancy(tenant, image.tenants)
            found = Access(self._broker, ANONYMOUS, rights, self.quotas, tenancy=tenancy)
            self._alive.add(found)
            self._trusted[tenant] = found
        return found

    def _access(self, principal: Principal, host: str, tenant: str, session: Session | None = None) -> Access:
        image, (name, expires_ms, roles) = self._broker.accounts.image, principal
        home, host = home_of(image, name), host if self._has_hosts else ""
        shown, of_session = (principal, "") if session is None else (principal._replace(expires_ms=0), session.digest)
        key = shown, host, tenant or home, of_session
        found = self._accesses.pop(key, None)
        if found is None or (session is not None and found.is_over):
            self._check_acting(home, key[2], rights_of(image, name, host, home, roles))
            rights, tenancy = rights_of(image, name, host, key[2], roles), Tenancy(key[2], image.tenants)
            is_stored = account_of(image, name) is not None
            made = self._broker, name, rights, self.quotas, host, roles
            found = Access(*made, is_stored=is_stored, home=home, tenancy=tenancy, session=session)
            self._alive.add(found)
            if expires_ms:
                found.ends_ms = expires_ms
                _end_later(self.clock, found)
        self._accesses[key] = found
        if len(self._accesses) > ACCESSES_MAX:
            del self._accesses[next(iter(self._accesses))]
        return found

    def _check_acting(self, home: str, tenant: str, rights: Rights) -> None:
        """Who may not act for a tenant does not learn whether there is one."""
        image = self._broker.accounts.image
        if is_shut(image, home):
            raise NotAuthenticated(f"the tenant {home!r} is closed")
        if not may_act_for(home, tenant, rights):
            raise Refused(Code.CLUSTER_AUTHORIZATION_FAILED, f"acting for the tenant {tenant[:40]!r} is not allowed")
        if is_shut(image, tenant):
            raise Refused(Code.RESOURCE_NOT_FOUND, f"there is no tenant {tenant[:40]!r} to act for")

    def _changed(self) -> None:
        image = self._broker.accounts.image
        if image.revision == self._revision:
            return
        self._revision = image.revision
        self._has_hosts = any(rule.host != ANY_HOST for rule in image.rules.values())
        self.quotas.renew(image)
        self._accesses.clear()
        for access in list(self._alive):
            self._renew(access)
        self._trusted = {tenant: each for tenant, each in self._trusted.items() if not each.is_over}
        call_each(self.on_change)

    def _renew(self, access: Access) -> None:
        image, tenant, is_anonymous = self._broker.accounts.image, access.tenancy.tenant, access.principal == ANONYMOUS
        is_gone = access.is_stored and account_of(image, access.principal) is None
        is_over = access.is_over or is_gone or is_shut(image, access.home) or is_shut(image, tenant)
        if access.session is not None and self.logins is not None:
            is_over = is_over or self.logins.sessions.is_over(access.session)
        if not is_over and not is_anonymous and tenant != access.home:  # it may be no admin any more
            own = rights_of(image, access.principal, access.host, access.home, access.roles)
            is_over = not may_act_for(access.home, tenant, own)
        rights: Rights = NoRights()
        if not is_over:
            given = trusted_rights(image, tenant, self._given)
            rights = given if is_anonymous else rights_of(image, access.principal, access.host, tenant, access.roles)
        access.renew(rights, Tenancy(tenant, image.tenants), is_over=is_over)


def _end_later(clock: Clock, access: Access) -> None:
    """Nothing is kept for one that nobody holds: each log-in makes one, and may last for hours."""
    timer = clock.call_after(max(0, access.ends_ms - clock.now_ms()), partial(_end, clock, ref(access)))
    finalize(access, timer.cancel).atexit = False


def _end(clock: Clock, reference: ReferenceType[Access]) -> None:
    """What goes on with it, such as a stream, ends too. A session that was used meanwhile goes on."""
    access = reference()
    if access is None or access.is_over:
        return
    if access.ends_ms > clock.now_ms():
        _end_later(clock, access)
    else:
        access.renew(NoRights(), access.tenancy, is_over=True)


def host_of(peer: str) -> str:
    """Of `host:port`."""
    return peer.rpartition(":")[0]
