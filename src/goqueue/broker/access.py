"""What one principal may do, and the view of the broker that it gets for each operation."""

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from goqueue.broker.accounts.audit import Audit
from goqueue.broker.accounts.quotas import Allowance, Quotas
from goqueue.broker.broker import Broker
from goqueue.broker.tenants.belonging import account_of
from goqueue.broker.tenants.owners import ROLES_END
from goqueue.broker.view.scope import Scope
from goqueue.broker.view.view import View
from goqueue.model.access import EVERY_NAME, EVERYBODY, OPEN, Kind, Operation, Permission, Rights, Rule
from goqueue.model.audit import Asked, Outcome
from goqueue.model.credentials import NotAuthenticated
from goqueue.model.sessions import Session
from goqueue.model.tenancy import ACTS, DEFAULT_TENANT, MARK, ONE_TENANT, Tenancy
from goqueue.telemetry.calls import call_each


class Access:
    """What one principal may do: one for each of them, whatever they come through."""

    def __init__(  # noqa: PLR0913  all that one principal is
        self,
        broker: Broker,
        principal: str,
        rights: Rights,
        quotas: Quotas,
        host: str = "",
        roles: tuple[str, ...] = (),
        *,
        is_stored: bool = False,
        home: str = DEFAULT_TENANT,
        tenancy: Tenancy = ONE_TENANT,
        session: Session | None = None,
    ) -> None:
        self._broker = broker
        self._quotas = quotas
        self.principal = principal
        self.host = host
        self.roles = roles
        """Of a token, beside those of the account."""
        self.is_stored = is_stored
        """A user or a key; a certificate may name others."""
        self._rights = rights
        self.home = home
        """The tenant that it belongs to."""
        self.tenancy = tenancy
        """Of the tenant that it acts for."""
        self.session = session
        """As it was last shown, where a browser came with one."""
        self.ends_ms = 0
        """When what was shown ends; 0: it does not."""
        self.on_end: dict[Callable[[], None], None] = {}
        """Called when it is over, by what would otherwise go on."""
        audit = broker.audit
        self._on_refused = None if audit is None else partial(_note_refusal, audit, self.asked(host, "", ""))
        self._views: dict[Permission, View] = {}
        """Bounded: permissions stand in the tables of operations."""
        self._reading: WeakKeyDictionary[Scope, None] = WeakKeyDictionary()
        """Of whoever reads messages: a stream may have one from before several changes."""
        self.is_over = False
        """There is no such user or key any more, or what it has shown has ended."""
        self._counted: Allowance | None = None
        """By what topics that are made and deleted are counted, where they are."""
        self._whole: Access | None = None
        """Of one that counts: the one whose rights are renewed."""
        self.kept: dict[str, Any] = {}
        """What APIs remember for this access: gone when the rights change."""

    @property
    def told(self) -> str:
        """Who this is, as nodes of a cluster tell each other: with the roles of a token, which the others never saw."""
        who = f"{','.join(self.roles)}{ROLES_END}{self.principal}" if self.roles else self.principal
        tenant = self.tenancy.tenant
        return who if tenant == self.home else f"{ACTS}{tenant};{who}"

    @property
    def known_as(self) -> str:
        """The principal, as its own tenant knows it."""
        return self.principal if self.home == DEFAULT_TENANT else self.principal.replace(f"{self.home}{MARK}", "", 1)

    @property
    def roles_held(self) -> tuple[str, ...]:
        account = account_of(self._broker.accounts.image, self.principal)
        return tuple(dict.fromkeys((*self.roles, *(() if account is None else account.roles))))

    @property
    def rules(self) -> list[Rule]:
        """About it, or about everybody in its tenant."""
        rules = self._broker.accounts.image.rules.values()
        return [each for each in rules if each.tenant == self.home and each.principal in (self.known_as, EVERYBODY)]

    def may(self, kind: Kind) -> list[Operation]:
        """With every name of a kind."""
        asked = (each for each in Operation if each is not Operation.ALL)
        return [each for each in asked if self._rights.allows(kind, each, EVERY_NAME)]

    def asked(self, host: str, api: str, operation: str, resource: str = "", fields: tuple[str, ...] = ()) -> Asked:
        """What this one wants, as the audit trail tells it."""
        tenant = self.tenancy.tenant
        return Asked(self.principal, host, api, operation, resource, fields, tenant, tenant != self.home)

    def view(self, permission: Permission) -> View:
        """The broker for one operation. Raises where that needs a right on the cluster and there is none."""
        if self._whole is not None:
            return self._whole.view(permission).charged(self._counted)
        found = self._views.get(permission)
        if found is None:
            if self.is_over and permission is not OPEN:
                raise NotAuthenticated(f"{self.principal} is gone, or its credentials have ended")
            scope = Scope(permission, self._rights, self.tenancy, self._on_refused)
            found = self._views[permission] = View(self._broker, scope)
            if Operation.READ in permission.needs.get(Kind.TOPIC, ()):
                self._reading[scope] = None
        return found

    def charged(self, client_id: str) -> "Access":
        """The same, for one request of a client that calls itself so: topics that it makes and deletes are counted."""
        allowance = self.allowance(client_id)
        if allowance is None or not allowance.limits_mutations:
            return self
        made = copy(self)
        made._whole, made._counted = self, allowance  # noqa: SLF001  one of the same kind
        return made

    def allowance(self, client_id: str) -> Allowance | None:
        """How much of it, for a client that calls itself so. None: there is no limit."""
        quotas = self._quotas
        if not quotas.are_set:
            return None
        return quotas.of(self.principal.partition(":")[2], client_id, self.tenancy.tenant)

    def renew(self, rights: Rights, tenancy: Tenancy, *, is_over: bool) -> None:
        """Whoever reads messages meets the new rights in the middle of it: fetches that wait, long polls, streams.
        Others finish what they have begun: one may have taken its own rights away, and is answered."""
        self._rights, self.tenancy, self.is_over = rights, tenancy, is_over
        for scope in list(self._reading):
            scope.renew(rights, tenancy)
        self._views.clear()
        self.kept.clear()
        if is_over:
            calls, self.on_end = list(self.on_end), {}
            call_each(calls)


def _note_refusal(audit: Audit, by: Asked, kind: Kind, operation: Operation, name: str) -> None:
    audit.note(by._replace(operation=operation.name.lower(), resource=f"{kind} {name}"), Outcome.REFUSED)
