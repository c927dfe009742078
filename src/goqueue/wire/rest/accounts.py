"""Users, API keys and rules."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from goqueue.wire.rest.common import Body, Count, Duration, Query, Reply

NAME_PATTERN = r"^[^\x00-\x1f\x7f:/]{1,200}$"
AccountName = Annotated[str, Meta(pattern=NAME_PATTERN, min_length=1, max_length=200, examples=["alice"])]
KeyId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,64}$", max_length=64, examples=["k0123456789abcdef"])]
Password = Annotated[str, Meta(min_length=1, max_length=1024, description="Stored as what it can be checked by")]
Roles = Annotated[
    list[str],
    Meta(max_length=16, description="Of admin, operator, producer, consumer, viewer and metrics", examples=[["admin"]]),
]


class UserPath(Query):
    user: AccountName


class NewUser(Body):
    name: AccountName
    password: Password
    roles: Roles = msgspec.field(default_factory=list)


class UserChange(Body):
    password: Password | None = None
    roles: Roles | None = None


class UserFacts(Reply):
    name: str
    principal: str
    roles: list[str]
    mechanisms: list[str]
    created_at: Count


class Users(Reply):
    users: list[UserFacts]
    count: Count


class AccountDeleted(Reply):
    success: bool
    deleted: Annotated[str, Meta(description="Name of the user, or id of the key or rule")]


class KeyPath(Query):
    key: KeyId


class NewKey(Body):
    name: AccountName
    roles: Roles
    expires_in: Annotated[Duration | None, Meta(description="After which it is not taken any more")] = None
    metadata: dict[str, str] = msgspec.field(default_factory=dict)


class Rotation(Body):
    overlap: Annotated[Duration, Meta(description="How long the secret before is still taken")] = "24h"


class KeyFacts(Reply):
    id: str
    principal: str
    prefix: Annotated[str, Meta(description="How the key begins, by which people know it again")]
    name: str
    roles: list[str]
    created_at: Count
    expires_at: int | None
    secrets: Annotated[int, Meta(description="2 while the one before a rotation is still taken")]
    is_bootstrap: bool
    metadata: dict[str, str]
    key: Annotated[str | UnsetType, Meta(description="The key itself; told once")] = UNSET


class Keys(Reply):
    keys: list[KeyFacts]
    count: Count


class RulePath(Query):
    rule: KeyId


class NewRule(Body):
    principal: Annotated[str, Meta(max_length=210, examples=["User:alice"], description="`User:*` is everybody")]
    resource_type: Annotated[
        str, Meta(examples=["topic"], description="topic, group, cluster, transactional_id or subject")
    ]
    resource_name: Annotated[
        str,
        Meta(min_length=1, max_length=255, examples=["orders"], description="`orders-*`: all that begin so"),
    ]
    operation: Annotated[
        str,
        Meta(
            examples=["read"],
            description="read, write, create, delete, alter, describe, describe_configs, alter_configs or all",
        ),
    ]
    effect: Annotated[str, Meta(examples=["allow"], description="allow or deny; deny wins")] = "allow"
    host: Annotated[str, Meta(max_length=64, description="The address of the client; `*` is any")] = "*"


class RuleFacts(Reply):
    id: str
    principal: str
    resource_type: str
    resource_name: str
    operation: str
    effect: str
    host: str


class Rules(Reply):
    acls: list[RuleFacts]
    count: Count
