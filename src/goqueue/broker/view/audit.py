"""The audit trail, as a tenant sees it: what its own people did, what was done for it, and nothing of others."""

from collections.abc import Callable

from msgspec.structs import replace

from goqueue.broker.accounts.audit import Audit
from goqueue.broker.accounts.hidden_offsets import OLDEST, HiddenOffsets
from goqueue.broker.view.scope import Scope
from goqueue.model.access import THE_CLUSTER, Kind
from goqueue.model.audit import NO_CHANGE, AuditPage, AuditRecord, Recorded

OPERATOR = "operator"
"""Whoever of the default tenant acted for a tenant, as that one is told: who they are is not its business."""


class AuditPort:
    def __init__(self, audit: Audit, scope: Scope) -> None:
        self._audit = audit
        self._scope = scope

    async def page(self, first: int | None, count: int, is_told: Callable[[AuditRecord], bool]) -> AuditPage:
        """The default tenant sees all. Others are not told how many records those of others are."""
        self._scope.admit(Kind.CLUSTER, THE_CLUSTER)
        tenancy = self._scope.tenancy
        if tenancy.is_default:
            return await self._audit.page(first, count, is_told)

        def is_own(record: AuditRecord) -> bool:
            return record.tenant == tenancy.tenant and is_told(self._shown(record))

        hidden = self._audit.hidden_offsets(tenancy.tenant)
        page = await self._audit.page(None if first is None else hidden.found(first), count, is_own)
        following = hidden.told(page.following)
        return AuditPage(OLDEST, following, following, [self._told(each, hidden) for each in page.found])

    def _told(self, kept: Recorded, hidden: HiddenOffsets) -> Recorded:
        record = self._shown(kept.record)
        if record.change != NO_CHANGE:
            record = replace(record, change=hidden.told(record.change))
        return Recorded(hidden.told(kept.offset), record, kept.is_chained)

    def _shown(self, record: AuditRecord) -> AuditRecord:
        if record.is_operator:
            return replace(record, principal=OPERATOR, host="")
        return replace(record, principal=record.principal.replace(self._scope.tenancy.prefix, "", 1))
