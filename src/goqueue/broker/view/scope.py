"""What one operation of one client may touch: each name that it passes to the broker is mapped, checked and charged."""

from collections.abc import Callable, Hashable
from typing import Final

from goqueue.model.access import (
    CODES,
    EVERY_NAME,
    OPEN,
    THE_CLUSTER,
    Kind,
    Operation,
    Permission,
    Rights,
    SuspendedRights,
    refusal,
)
from goqueue.model.errors import GoQueueError
from goqueue.model.tenancy import ONE_TENANT, Tenancy, TenantSuspended
from goqueue.telemetry.calls import call_each


class Scope:
    __slots__ = ("__weakref__", "_open", "on_refused", "on_renewed", "permission", "rights", "tenancy")

    def __init__(
        self,
        permission: Permission,
        rights: Rights,
        tenancy: Tenancy = ONE_TENANT,
        on_refused: Callable[[Kind, Operation, str], None] | None = None,
    ) -> None:
        self.permission: Final = permission
        self.on_refused: Final = on_refused
        """Told what was asked for in vain."""
        self.on_renewed: Final[dict[Callable[[], None], None]] = {}
        """Called when the rights are others."""
        self.renew(rights, tenancy)
        if next(iter(permission.needs), None) is Kind.CLUSTER:  # else whoever turns to the cluster asks for it
            self.admit(Kind.CLUSTER, THE_CLUSTER)

    def renew(self, rights: Rights, tenancy: Tenancy) -> None:
        """An operation that goes on while they change meets the new ones."""
        self.rights = rights
        self.tenancy = tenancy
        """Whose names these are."""
        is_open = rights.are_all and tenancy.is_all
        self._open = frozenset(kind for kind, asked in self.permission.needs.items() if asked and is_open)
        """Kinds of which every name is admitted as it is."""
        call_each(list(self.on_renewed))

    def admit(self, kind: Kind, name: str, operation: Operation | None = None) -> str:
        """The full name. Raises if it may not be touched, or if its kind was not declared."""
        if operation is None and kind in self._open:
            return name
        asked = self.permission.operation(kind, operation)
        if asked is None or not self.rights.allows(kind, asked, name):
            if self.on_refused is not None and asked is not None:
                self.on_refused(kind, asked, name)
            raise self._refusal(kind, operation or asked, name)
        return name if self.tenancy.is_all else self._full(kind, name, operation or asked)

    def admit_total(self, kind: Kind) -> None:
        """For what is told of all names of a kind together. A tenant's are those of that tenant."""
        asked = self.permission.operation(kind)
        if asked is None or not self.rights.allows(kind, asked, EVERY_NAME):
            if self.on_refused is not None and asked is not None:
                self.on_refused(kind, asked, EVERY_NAME)
            raise self._refusal(kind, asked, EVERY_NAME)

    def _full(self, kind: Kind, name: str, operation: Operation) -> str:
        """There are several tenants."""
        tenancy = self.tenancy
        if kind is Kind.CLUSTER:
            return name
        is_total = name == EVERY_NAME and not tenancy.is_default  # a total over all tenants
        if is_total or not tenancy.may_be_called(name):
            raise refusal(kind, operation, name)
        return name if tenancy.is_default else tenancy.full(name)

    def renamed(self, plain: str) -> str:
        """The full name of something that is only mentioned: whoever uses it asks for the right."""
        if not self.tenancy.may_be_called(plain):
            raise refusal(Kind.TOPIC, None, plain)
        return self.tenancy.full(plain)

    def admit_kept(self, kind: Kind, name: str) -> None:
        """The same of a name that is kept: raises if it may not be touched, or is another tenant's."""
        if not self.shows(kind, name):
            asked, plain = self.permission.operation(kind), self.tenancy.plain(name)
            if self.on_refused is not None and asked is not None:
                self.on_refused(kind, asked, plain)
            raise self._refusal(kind, asked, plain)

    def _refusal(self, kind: Kind, operation: Operation | None, name: str) -> GoQueueError:
        if isinstance(self.rights, SuspendedRights) and kind in CODES:
            return TenantSuspended(
                CODES[kind], f"the tenant {self.tenancy.tenant!r} is suspended: {self.rights.reason}"
            )
        return refusal(kind, operation, name)

    def shows(self, kind: Kind, name: str) -> bool:
        """Whether a list has a name that is kept. Raises if its kind was not declared: then there should be no list."""
        asked = self.permission.operation(kind)
        if asked is None:
            raise refusal(kind, None, name)
        tenancy = self.tenancy
        if not tenancy.is_all:
            return tenancy.owns(name) and self.rights.allows(kind, asked, tenancy.plain(name))
        return self.rights.allows(kind, asked, name)

    @property
    def alike(self) -> Hashable:
        """Whoever has the same is shown the same names."""
        told = [(kind, self.rights.alike(kind, asked[0])) for kind, asked in self.permission.needs.items()]
        return self.tenancy.tenant, self.tenancy.others, *told

    def check_active(self) -> None:
        """Raises where nobody of the tenant may do anything now: lists would be empty, and nobody would know why."""
        if isinstance(self.rights, SuspendedRights):
            raise self._refusal(Kind.TOPIC, None, EVERY_NAME)

    def shows_total(self, kind: Kind) -> bool:
        """Whether what is told of all names of a kind together, of all tenants, may be told here."""
        asked = self.permission.operation(kind)
        return asked is not None and self.tenancy.is_default and self.rights.allows(kind, asked, EVERY_NAME)

    def is_open_to(self, kind: Kind, operation: Operation | None = None) -> bool:
        """Every name of this kind would be admitted as it is: whoever finds that out first need not ask again."""
        return self.rights.are_all and self.tenancy.is_all and self.permission.operation(kind, operation) is not None


class Mentioning(Scope):
    """For what touches nothing: names are mapped, and no right is asked for."""

    __slots__ = ()

    def __init__(self, scope: Scope) -> None:
        super().__init__(OPEN, scope.rights, scope.tenancy)

    def admit(self, kind: Kind, name: str, operation: Operation | None = None) -> str:  # noqa: ARG002  any will do
        return self.renamed(name)
