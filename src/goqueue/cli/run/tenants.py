"""`goqueue tenant`."""

import msgspec

from goqueue.cli.call import Call
from goqueue.cli.exits import EXIT_USAGE, CommandFailed
from goqueue.cli.run.quotas import NO_LIMIT, NULL
from goqueue.model.tenancy import TenantLimit
from goqueue.wire.rest.operations import tenants as operations


async def create_tenant(call: Call) -> None:
    given = call.given
    call.out.facts(
        await call.admin.call(
            operations.CREATE_TENANT,
            id=given.id,
            name=given.name or given.id,
            description=given.description or "",
            metadata=_metadata(given.meta or []),
        )
    )


async def change_tenant(call: Call) -> None:
    given = call.given
    if given.name is None and given.description is None and not given.meta:
        raise CommandFailed("say --name, --description or --meta: what is to be changed", EXIT_USAGE)
    metadata = _metadata(given.meta) if given.meta else None
    changed = await call.admin.call(
        operations.CHANGE_TENANT,
        tenant=given.tenant,
        name=given.name,
        description=given.description,
        metadata=metadata,
    )
    call.out.facts(changed)


async def quotas(call: Call) -> None:
    given = {str(key): getattr(call.given, key) for key in TenantLimit}
    limits = {key: _limit(key, text) for key, text in given.items() if text is not None}
    operation = operations.SET_TENANT_QUOTAS if limits else operations.TENANT_QUOTAS
    call.out.facts(await call.admin.call(operation, tenant=call.given.tenant, **limits))


def _limit(key: str, text: str) -> int | msgspec.Raw:
    if text == NO_LIMIT:
        return NULL
    if not text.isascii() or not text.isdigit():
        raise CommandFailed(f"{key} is a whole number or {NO_LIMIT}, not {text!r}", EXIT_USAGE)
    return int(text)


def _metadata(given: list[str]) -> dict[str, str]:
    pairs = [each.partition("=") for each in given]
    if not all(key and sign for key, sign, _ in pairs):
        raise CommandFailed("--meta is KEY=VALUE", EXIT_USAGE)
    return {key: value for key, _, value in pairs}
