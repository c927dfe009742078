"""`goqueue quota`."""

import msgspec

from goqueue.cli.call import Call
from goqueue.cli.exits import EXIT_USAGE, CommandFailed
from goqueue.model.quotas import QuotaKey
from goqueue.wire.rest.operations import quotas as operations

NO_LIMIT = "none"
NULL = msgspec.Raw(b"null")
"""What is None would not be said at all."""


async def set_quota(call: Call) -> None:
    given = {str(key): getattr(call.given, key) for key in QuotaKey}
    limits = {key: _limit(key, value) for key, value in given.items() if value is not None}
    if not limits:
        known = ", ".join(f"--{key.replace('_', '-')}" for key in QuotaKey)
        raise CommandFailed(f"say what is limited: {known}", EXIT_USAGE)
    call.out.facts(await call.admin.call(operations.SET_QUOTA, **_entity(call), **limits))


async def describe_quota(call: Call) -> None:
    named = {"user": call.given.user, "client_id": call.given.client_id, "ip": call.given.ip}
    call.out.facts(await call.admin.call(operations.DESCRIBE_QUOTA, **named))


async def delete_quota(call: Call) -> None:
    call.out.facts(await call.admin.call(operations.DELETE_QUOTA, **_entity(call)))


def _entity(call: Call) -> dict[str, str | None]:
    named = {"user": call.given.user, "client_id": call.given.client_id, "ip": call.given.ip}
    if all(each is None for each in named.values()):
        raise CommandFailed("say --user, --client-id, both, or --ip: whose quota it is", EXIT_USAGE)
    return named


def _limit(key: str, text: str) -> float | msgspec.Raw:
    if text == NO_LIMIT:
        return NULL
    try:
        return float(text)
    except ValueError:
        raise CommandFailed(f"{key} is a number or {NO_LIMIT}, not {text!r}", EXIT_USAGE) from None
