"""Users, API keys and rules."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from goqueue.model.secret import hides
from goqueue.wire.rest.common import Body, Count, Duration, Query, Reply

NAME_PATTERN = r"^[^\x00-\x1f\x7f:/]{1,200}\Z"
AccountName = Annotated[str, Meta(pattern=NAME_PATTERN, min_length=1, max_length=200, examples=["alice"])]
KeyId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,64}\Z", max_length=64, examples=["k0123456789abcdef"])]
Password = Annotated[str, Meta(min_length=1, max_length=1024, description="Stored as what it can be checked by")]
ROLES_SAID = (
    "Of admin, operator, producer, consumer, viewer and metrics; `producer:orders-*`: for names that begin so (but not"
    " admin and metrics)"
)
Roles = Annotated[
    list[str],
    Meta(max_length=16, description=ROLES_SAID, examples=[["producer:orders-*"]]),
]


RuleId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,64}\Z", max_length=64, examples=["r0123456789abcdef"])]
Principal = Annotated[str, Meta(examples=["User:alice"], description="As rules name it")]
RolesHeld = Annotated[list[str], Meta(description="What is allowed without a rule that says so")]
CreatedAt = Annotated[Count, Meta(description="When it was made, in milliseconds since 1970")]


class Rekeyed(Reply):
    accounts: Annotated[Count, Meta(description="Users and keys that were sealed anew")]


class UserPath(Query):
    user: Annotated[AccountName, Meta(description="Name of the user")]


@hides("password")
class NewUser(Body):
    name: AccountName
    password: Password
    roles: Roles = msgspec.field(default_factory=list)


@hides("password")
class UserChange(Body):
    password: Password | None = None
    roles: Roles | None = None


class UserFacts(Reply):
    name: str
    principal: Principal
    roles: RolesHeld
    mechanisms: Annotated[list[str], Meta(description="Of SCRAM, by which the password can be checked")]
    created_at: CreatedAt


class Users(Reply):
    users: Annotated[list[UserFacts], Meta(description="By name")]
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
    for_sqs: Annotated[bool, Meta(description="Keep its secret, sealed, so that signatures of AWS can be checked")] = (
        False
    )


class Rotation(Body):
    overlap: Annotated[Duration, Meta(description="How long the secret before is still taken")] = "24h"


@hides("key")
class KeyFacts(Reply):
    id: str
    principal: Principal
    prefix: Annotated[str, Meta(description="How the key begins, by which people know it again")]
    name: str
    roles: RolesHeld
    created_at: CreatedAt
    expires_at: Annotated[
        int | None, Meta(description="From when on it is not taken, in milliseconds since 1970; null: it lasts")
    ]
    secrets: Annotated[int, Meta(description="2 while the one before a rotation is still taken")]
    is_bootstrap: Annotated[bool, Meta(description="Whether it ends when there is an admin that lasts")]
    metadata: dict[str, str]
    for_sqs: Annotated[bool, Meta(description="Whether AWS SDKs can sign with it: its id and the part behind the id")]
    last_used_at: Annotated[
        int | None,
        Meta(description="When it was last shown, in milliseconds since 1970; null: not since `since` of the list"),
    ]
    key: Annotated[str | UnsetType, Meta(description="The key itself; told once")] = UNSET


class Keys(Reply):
    keys: Annotated[list[KeyFacts], Meta(description="By id")]
    count: Count
    since: Annotated[
        int, Meta(description="From when on uses are known, in milliseconds since 1970: the latest start of a node")
    ]


class RulePath(Query):
    rule: Annotated[RuleId, Meta(description="Id of the rule")]


class NewRule(Body):
    principal: Annotated[str, Meta(max_length=210, examples=["User:alice"], description="`User:*` is everybody")]
    resource_type: Annotated[
        str, Meta(examples=["topic"], description="topic, group, cluster, transactional_id, subject or tenant")
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
    principal: Annotated[str, Meta(description="Whom it is about; `User:*` is everybody")]
    resource_type: Annotated[str, Meta(description="topic, group, cluster, transactional_id, subject or tenant")]
    resource_name: Annotated[str, Meta(description="`orders-*`: all that begin so; `*`: all")]
    operation: Annotated[str, Meta(description="What is allowed or denied, or all")]
    effect: Annotated[str, Meta(description="allow or deny; deny wins")]
    host: str


class Rules(Reply):
    acls: Annotated[list[RuleFacts], Meta(description="By id")]
    count: Count
