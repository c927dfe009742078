"""How many groups a tenant has. A group begins with its first member, commit or delivery, at whichever node that is; so
whoever lets a new one begin asks the others for the names of theirs.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import Refused
from goqueue.model.tenancy import MARK, Tenant, TenantLimit, full, tenant_said

PAGE = 100

Page: TypeAlias = Callable[[str | None, int], list[str]]
"""The next names behind one."""
OnMay: TypeAlias = Callable[[GoQueueError | None], None]


class GroupCounts:
    def __init__(self, tenants: Callable[[], Mapping[str, Tenant]], pages: Iterable[Page]) -> None:
        """`pages`: of the groups that this node knows."""
        self._tenants = tenants
        self._pages = tuple(pages)
        self.elsewhere: Callable[[str, Callable[[Iterable[str]], None]], None] | None = None
        """In a cluster: names of groups of a tenant that other nodes know."""

    def limit_of(self, group_id: str) -> int | None:
        """How many groups the tenant of this one may have."""
        tenant = self._tenants().get(tenant_said(group_id)) if MARK in group_id else None
        return None if tenant is None else tenant.quotas.get(TenantLimit.GROUPS)

    def members_max(self, group_id: str) -> int | None:
        """How many members a group may have, by the quota of its tenant."""
        tenant = self._tenants().get(tenant_said(group_id)) if MARK in group_id else None
        return None if tenant is None else tenant.quotas.get(TenantLimit.MEMBERS)

    def names(self, tenant_id: str) -> set[str]:
        """Full names of groups of a tenant that this node knows. A refusal: not all of them can be told now."""
        prefix = full(tenant_id, "")
        return {name for page in self._pages for name in _all(page, prefix)}

    def all_names(self, tenant_id: str, on_names: Callable[[set[str]], None]) -> None:
        """The same, of all nodes that answer."""
        here = self.names(tenant_id)
        if self.elsewhere is None:
            on_names(here)
        else:
            self.elsewhere(tenant_id, lambda there: on_names(here.union(there)))

    def may_begin(self, group_id: str, on_may: OnMay) -> None:
        """Whether there may be a group that this node does not know. With the error, if there may not."""
        limit = self.limit_of(group_id)
        if limit is None:
            on_may(None)
            return

        def counted(names: set[str]) -> None:
            if group_id in names or len(names) < limit:
                on_may(None)
            else:
                words = f"the quota {TenantLimit.GROUPS} of the tenant is {limit}, and it has {len(names)} groups"
                on_may(Refused(Code.POLICY_VIOLATION, words))

        try:
            self.all_names(tenant_said(group_id), counted)
        except GoQueueError as error:
            on_may(error)


def _all(page: Page, prefix: str) -> Iterable[str]:
    after = prefix
    while True:
        names = [name for name in page(after, PAGE) if name.startswith(prefix)]
        yield from names
        if len(names) < PAGE:
            return
        after = names[-1]
