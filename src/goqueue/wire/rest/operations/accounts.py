"""Operations on users, API keys and rules."""

from goqueue.wire.home import EVERYWHERE, HERE
from goqueue.wire.rest import accounts
from goqueue.wire.rest.operation import Resource

ACCOUNTS = Resource("Accounts")

CREATE_USER = ACCOUNTS.add(
    "create_user",
    "POST /admin/users",
    accounts.UserFacts,
    "Make a user, who logs in with a password: over Kafka with SCRAM or PLAIN, over HTTP with Basic.",
    body=accounts.NewUser,
    status=201,
    errors=(409,),
    home=HERE,
)

LIST_USERS = ACCOUNTS.add("list_users", "GET /admin/users", accounts.Users, "All users.", home=HERE)

CHANGE_USER = ACCOUNTS.add(
    "change_user",
    "PATCH /admin/users/{user}",
    accounts.UserFacts,
    "Give a user another password, or other roles.",
    path=accounts.UserPath,
    body=accounts.UserChange,
    errors=(404,),
    home=HERE,
)

DELETE_USER = ACCOUNTS.add(
    "delete_user",
    "DELETE /admin/users/{user}",
    accounts.AccountDeleted,
    "Delete a user. Its connections are closed.",
    path=accounts.UserPath,
    errors=(404,),
    home=HERE,
)

CREATE_KEY = ACCOUNTS.add(
    "create_key",
    "POST /admin/keys",
    accounts.KeyFacts,
    """Make an API key. The answer is the only place where it is ever told.

    It is sent as `Authorization: Bearer gqk_...` or `X-API-Key`; where a user and a password are asked for, they are
    the id and the part behind it.
    """,
    body=accounts.NewKey,
    status=201,
    home=HERE,
)

LIST_KEYS = ACCOUNTS.add(
    "list_keys", "GET /admin/keys", accounts.Keys, "All API keys, without what is secret.", home=EVERYWHERE
)

ROTATE_KEY = ACCOUNTS.add(
    "rotate_key",
    "POST /admin/keys/{key}/rotate",
    accounts.KeyFacts,
    "Give a key another secret. The one before is taken for a while longer.",
    path=accounts.KeyPath,
    body=accounts.Rotation,
    errors=(404,),
    home=HERE,
)

DELETE_KEY = ACCOUNTS.add(
    "delete_key",
    "DELETE /admin/keys/{key}",
    accounts.AccountDeleted,
    "Delete an API key. Connections that were made with it are closed.",
    path=accounts.KeyPath,
    errors=(404,),
    home=HERE,
)

REKEY = ACCOUNTS.add(
    "rekey",
    "POST /admin/rekey",
    accounts.Rekeyed,
    """Seal everything under the master key that is in use, the first of `master_key_file`.

    Then the keys below it are not needed any more. Whoever is interrupted does it again.
    """,
    home=HERE,
)

CREATE_ACL = ACCOUNTS.add(
    "create_acl",
    "POST /admin/acls",
    accounts.RuleFacts,
    """Allow somebody something, or deny it. One that says what another says already adds nothing.

    What no rule and no role allows is denied. `read`, `write`, `delete` and `alter` allow to describe, too.
    """,
    body=accounts.NewRule,
    status=201,
    home=HERE,
)

LIST_ACLS = ACCOUNTS.add("list_acls", "GET /admin/acls", accounts.Rules, "All rules.", home=HERE)

DELETE_ACL = ACCOUNTS.add(
    "delete_acl",
    "DELETE /admin/acls/{rule}",
    accounts.AccountDeleted,
    "Take a rule back, by its id.",
    path=accounts.RulePath,
    errors=(404,),
    home=HERE,
)
