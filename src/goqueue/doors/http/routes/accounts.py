"""Users and API keys."""

from functools import partial

from msgspec import UNSET

from goqueue.broker.accounts.accounts import NewKey as MadeKey
from goqueue.doors.http.call import Call
from goqueue.doors.http.operation import Handlers
from goqueue.doors.http.permissions import DESCRIBES_CLUSTER, MANAGES_ACCESS
from goqueue.model.accounts import KEY_PREFIX, ApiKey, User
from goqueue.model.codes import Code
from goqueue.model.moments import parse_duration_ms
from goqueue.model.refusal import Refused
from goqueue.wire.rest.accounts import (
    AccountDeleted,
    KeyFacts,
    KeyPath,
    Keys,
    NewKey,
    NewUser,
    Rekeyed,
    Rotation,
    UserChange,
    UserFacts,
    UserPath,
    Users,
)
from goqueue.wire.rest.operations import accounts as operations

accounts = Handlers()
OVERLAP_MS_MAX = 30 * 24 * 60 * 60 * 1000


@accounts.handles(operations.CREATE_USER, MANAGES_ACCESS)
async def create_user(call: Call, body: NewUser) -> UserFacts:
    service = call.broker.accounts
    await call.ask(partial(service.create_user, body.name, body.password, body.roles))
    return _user(call, body.name)


@accounts.handles(operations.LIST_USERS, DESCRIBES_CLUSTER)
async def list_users(call: Call) -> Users:
    known = call.broker.accounts.image.users
    return Users(users=[_user_facts(known[name]) for name in sorted(known)], count=len(known))


@accounts.handles(operations.CHANGE_USER, MANAGES_ACCESS)
async def change_user(call: Call, path: UserPath, body: UserChange) -> UserFacts:
    service = call.broker.accounts
    await call.ask(partial(service.change_user, path.user, body.password, body.roles))
    return _user(call, path.user)


@accounts.handles(operations.DELETE_USER, MANAGES_ACCESS)
async def delete_user(call: Call, path: UserPath) -> AccountDeleted:
    await call.ask(partial(call.broker.accounts.delete_user, path.user))
    return AccountDeleted(success=True, deleted=path.user)


@accounts.handles(operations.CREATE_KEY, MANAGES_ACCESS)
async def create_key(call: Call, body: NewKey) -> KeyFacts:
    expires_ms = 0 if body.expires_in is None else call.now_ms + _positive_ms(body.expires_in)
    service = call.broker.accounts
    made: MadeKey = await call.ask(
        lambda done: service.create_key(body.name, body.roles, expires_ms, body.metadata, done, is_for_sqs=body.for_sqs)
    )
    return _key_facts(made.key, made.text.reveal())


@accounts.handles(operations.LIST_KEYS, DESCRIBES_CLUSTER)
async def list_keys(call: Call) -> Keys:
    known, uses = call.broker.accounts.image.keys, call.broker.accounts.key_uses
    told = [_key_facts(known[key_id], last_used_ms=uses.last_ms(key_id)) for key_id in sorted(known)]
    return Keys(keys=told, count=len(told), since=uses.since_ms)


@accounts.handles(operations.ROTATE_KEY, MANAGES_ACCESS)
async def rotate_key(call: Call, path: KeyPath, body: Rotation) -> KeyFacts:
    overlap_ms = parse_duration_ms(body.overlap)
    if not 0 <= overlap_ms <= OVERLAP_MS_MAX:
        raise Refused(Code.INVALID_REQUEST, "overlap is 0 to 30 days")
    made: MadeKey = await call.ask(partial(call.broker.accounts.rotate_key, path.key, overlap_ms))
    return _key_facts(made.key, made.text.reveal())


@accounts.handles(operations.DELETE_KEY, MANAGES_ACCESS)
async def delete_key(call: Call, path: KeyPath) -> AccountDeleted:
    await call.ask(partial(call.broker.accounts.delete_key, path.key))
    return AccountDeleted(success=True, deleted=path.key)


@accounts.handles(operations.REKEY, MANAGES_ACCESS)
async def rekey(call: Call) -> Rekeyed:
    count: int = await call.ask(call.broker.accounts.rekey)
    return Rekeyed(accounts=count)


def _positive_ms(duration: str | int) -> int:
    found = parse_duration_ms(duration)
    if found <= 0:
        raise Refused(Code.INVALID_REQUEST, "expires_in is more than 0")
    return found


def _user(call: Call, name: str) -> UserFacts:
    found = call.broker.accounts.image.users.get(name)
    if found is None:  # by somebody else, meanwhile
        raise Refused(Code.RESOURCE_NOT_FOUND, f"there is no user {name!r}")
    return _user_facts(found)


def _user_facts(user: User) -> UserFacts:
    return UserFacts(
        name=user.name,
        principal=user.principal,
        roles=list(user.roles),
        mechanisms=sorted(user.scram),
        created_at=user.created_ms,
    )


def _key_facts(key: ApiKey, text: str = "", last_used_ms: int | None = None) -> KeyFacts:
    return KeyFacts(
        id=key.key_id,
        principal=key.principal,
        prefix=f"{KEY_PREFIX}_{key.key_id}_",
        name=key.name,
        roles=list(key.roles),
        created_at=key.created_ms,
        expires_at=key.expires_ms or None,
        secrets=len(key.secrets),
        is_bootstrap=key.is_bootstrap,
        metadata=key.metadata,
        for_sqs=key.is_for_sqs,
        last_used_at=last_used_ms,
        key=text or UNSET,
    )
