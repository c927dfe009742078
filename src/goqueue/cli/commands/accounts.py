"""Commands about users and API keys."""

from goqueue.cli.table import ASKS, Asks, Command, Shown, flag, place

_ROLE = flag(
    "--role",
    metavar="ROLE",
    is_repeated=True,
    dest="roles",
    help="admin, operator, producer, consumer, viewer or metrics; 'producer:orders-*': for names that begin so; may be"
    " given several times",
)
_PASSWORD_FILE = flag(
    "--password-file",
    metavar="FILE",
    help="file with the password in its first line (- is stdin; default: it is asked for)",
)
_USER = place("user", "name of the user")
_KEY = place("key", "id of the key, as the list shows it")

ACCOUNTS = (
    Command(
        "user create",
        "make a user, who logs in with a password",
        "accounts.create_user",
        (place("name", "name of the user"), _PASSWORD_FILE, _ROLE),
        examples=("goqueue user create alice --role producer --password-file alice.txt",),
    ),
    Command(
        "user list",
        "list the users",
        ASKS,
        examples=("goqueue user list",),
        asks=Asks(
            "accounts.LIST_USERS",
            rows="users",
            columns=(Shown("USER", "name"), Shown("ROLES", "roles"), Shown("MECHANISMS", "mechanisms")),
            nothing="no users yet",
        ),
    ),
    Command(
        "user change",
        "give a user another password, or other roles",
        "accounts.change_user",
        (_USER, _PASSWORD_FILE, flag("--password", help="ask for another password"), _ROLE),
        examples=("goqueue user change alice --password", "goqueue user change alice --role consumer"),
    ),
    Command(
        "user delete",
        "delete a user, and close its connections",
        ASKS,
        (_USER,),
        examples=("goqueue user delete alice",),
        asks=Asks("accounts.DELETE_USER", says="deleted user {deleted}"),
    ),
    Command(
        "key create",
        "make an API key; it is shown once",
        "accounts.create_key",
        (
            place("name", "what it is for"),
            _ROLE,
            flag("--expires-in", metavar="TIME", help="after which it is not taken any more (default: never)"),
            flag("--sqs", dest="for_sqs", help="for AWS SDKs, which sign with it; the server needs master_key_file"),
        ),
        examples=(
            "goqueue key create billing --role consumer --expires-in 90d",
            "goqueue key create shop --role 'producer:orders-*' --role 'consumer:orders-*'",
        ),
    ),
    Command(
        "key list",
        "list the API keys",
        ASKS,
        examples=("goqueue key list",),
        asks=Asks(
            "accounts.LIST_KEYS",
            rows="keys",
            columns=(
                Shown("KEY", "id"),
                Shown("NAME", "name"),
                Shown("ROLES", "roles"),
                Shown("EXPIRES", "expires_at"),
                Shown("LAST_USED", "last_used_at"),
            ),
            nothing="no keys yet",
        ),
    ),
    Command(
        "key rotate",
        "give a key another secret; the one before is taken for a while longer",
        "accounts.rotate_key",
        (_KEY, flag("--overlap", metavar="TIME", help="for so long (default 24h)")),
        examples=("goqueue key rotate k0123456789abcdef --overlap 1h",),
    ),
    Command(
        "key delete",
        "delete an API key, and close the connections that it made",
        ASKS,
        (_KEY,),
        examples=("goqueue key delete k0123456789abcdef",),
        asks=Asks("accounts.DELETE_KEY", says="deleted key {deleted}"),
    ),
    Command(
        "acl create",
        "allow somebody something, or deny it",
        "accounts.create_rule",
        (
            place("principal", "User:<name>, Key:<id> or User:*"),
            place("operation", "read, write, create, delete, alter, describe, describe_configs, alter_configs or all"),
            flag(
                "--on",
                metavar="KIND",
                default="topic",
                dest="resource_type",
                help="topic, group, cluster, transactional_id, subject or tenant (default topic)",
            ),
            flag(
                "--name",
                metavar="NAME",
                default="*",
                dest="resource_name",
                help="a name, or what names begin with and a * (default *: all)",
            ),
            flag("--deny", help="deny it; that wins over all that is allowed"),
            flag("--host", metavar="ADDRESS", default="*", help="only from this address (default: any)"),
        ),
        examples=("goqueue acl create User:alice read --name 'orders-*'",),
    ),
    Command(
        "acl list",
        "list the rules",
        ASKS,
        examples=("goqueue acl list",),
        asks=Asks(
            "accounts.LIST_ACLS",
            rows="acls",
            columns=(
                Shown("ID", "id"),
                Shown("PRINCIPAL", "principal"),
                Shown("EFFECT", "effect"),
                Shown("OPERATION", "operation"),
                Shown("KIND", "resource_type"),
                Shown("NAME", "resource_name"),
                Shown("HOST", "host"),
            ),
            nothing="no rules yet",
        ),
    ),
    Command(
        "acl delete",
        "take a rule back",
        ASKS,
        (place("rule", "id of the rule, as the list shows it"),),
        examples=("goqueue acl delete r0123456789abcdef",),
        asks=Asks("accounts.DELETE_ACL", says="deleted rule {deleted}"),
    ),
)
