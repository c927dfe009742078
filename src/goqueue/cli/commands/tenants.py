"""Commands about tenants."""

from goqueue.cli.table import ASKS, Asks, Command, Shown, flag, place

_TENANT = place("tenant", "id of the tenant")
_NAME = flag("--name", metavar="NAME", help="what people call it")
_DESCRIPTION = flag("--description", metavar="TEXT", help="what it is for")
_META = flag("--meta", metavar="KEY=VALUE", is_repeated=True, help="what else is to be kept with it")

TENANTS = (
    Command(
        "tenant create",
        "make a tenant: a cluster of its own, to those who belong to it",
        "tenants.create_tenant",
        (place("id", "1 to 32 of the characters a-z 0-9 -"), _NAME, _DESCRIPTION, _META),
        examples=("goqueue tenant create acme --name 'Acme Ltd'",),
    ),
    Command(
        "tenant list",
        "list the tenants",
        ASKS,
        (flag("--status", metavar="STATUS", help="only those that are active, suspended, disabled or deleting"),),
        examples=("goqueue tenant list --status suspended",),
        asks=Asks(
            "tenants.LIST_TENANTS",
            rows="tenants",
            columns=(Shown("TENANT", "id"), Shown("NAME", "name"), Shown("STATUS", "status")),
            nothing="no tenants",
        ),
    ),
    Command(
        "tenant describe",
        "show one tenant",
        ASKS,
        (_TENANT,),
        examples=("goqueue tenant describe acme",),
        asks=Asks("tenants.DESCRIBE_TENANT"),
    ),
    Command(
        "tenant update",
        "change what is said of a tenant",
        "tenants.change_tenant",
        (_TENANT, _NAME, _DESCRIPTION, _META),
        examples=("goqueue tenant update acme --description 'moved to the large plan'",),
    ),
    Command(
        "tenant suspend",
        "refuse all reads and writes of a tenant",
        ASKS,
        (_TENANT, flag("--reason", metavar="TEXT", is_required=True, help="told to whoever is refused")),
        examples=("goqueue tenant suspend acme --reason 'the bill is not paid'",),
        asks=Asks("tenants.SUSPEND_TENANT", says="tenant {id} is {status}"),
    ),
    Command(
        "tenant activate",
        "serve a tenant again",
        ASKS,
        (_TENANT,),
        examples=("goqueue tenant activate acme",),
        asks=Asks("tenants.ACTIVATE_TENANT", says="tenant {id} is {status}"),
    ),
    Command(
        "tenant disable",
        "refuse everything to a tenant, logins too",
        ASKS,
        (_TENANT,),
        examples=("goqueue tenant disable acme",),
        asks=Asks("tenants.DISABLE_TENANT", says="tenant {id} is {status}"),
    ),
    Command(
        "tenant delete",
        "delete a tenant, for good",
        ASKS,
        (_TENANT, flag("-f", "--force", help="with all that it has; without, one that is not empty stays")),
        examples=("goqueue tenant delete acme --force",),
        asks=Asks("tenants.DELETE_TENANT", says="tenant {tenant_id} is {status}"),
    ),
    Command(
        "tenant quotas",
        "show what a tenant may have at most, or change it",
        "tenants.quotas",
        (
            _TENANT,
            flag("--publish-rate-limit", metavar="COUNT", help="messages a second to publish; none: no limit"),
            flag("--consume-rate-limit", metavar="COUNT", help="messages a second that may be read"),
            flag("--publish-bytes-rate-limit", metavar="BYTES", help="bytes a second to publish"),
            flag("--consume-bytes-rate-limit", metavar="BYTES", help="bytes a second that may be read"),
            flag("--max-topics", metavar="COUNT", help="topics, dead letters among them"),
            flag("--max-total-partitions", metavar="COUNT", help="partitions of all topics"),
            flag("--max-partitions-per-topic", metavar="COUNT", help="partitions of one topic"),
            flag("--max-storage-bytes", metavar="BYTES", help="bytes stored, each once however many copies there are"),
            flag("--max-message-size-bytes", metavar="BYTES", help="key, value and headers of a message"),
            flag("--max-delay-hours", metavar="HOURS", help="how long a message may wait for its time"),
            flag("--max-retention-hours", metavar="HOURS", help="the longest retention of a topic"),
            flag("--max-consumer-groups", metavar="COUNT", help="groups of all kinds"),
            flag("--max-consumers-per-group", metavar="COUNT", help="members of one group"),
            flag("--max-connections", metavar="COUNT", help="connections to each node"),
            flag("--max-recurring-schedules", metavar="COUNT", help="schedules that recur"),
            flag("--max-schemas", metavar="COUNT", help="versions of all subjects"),
            flag("--max-accounts", metavar="COUNT", help="users, keys and rules: of each so many"),
            flag("--max-open-transactions", metavar="COUNT", help="begun over HTTP or gRPC, and not used"),
            flag("--max-share-sessions", metavar="COUNT", help="sessions of share groups to each node"),
            flag("--max-fetch-sessions", metavar="COUNT", help="sessions of Kafka consumers to each node"),
            flag("--controller-mutation-rate", metavar="COUNT", help="partitions a second that are made or deleted"),
        ),
        examples=("goqueue tenant quotas acme --max-topics 100 --publish-bytes-rate-limit 1048576",),
    ),
    Command(
        "tenant usage",
        "show what a tenant has",
        ASKS,
        (_TENANT,),
        examples=("goqueue tenant usage acme",),
        asks=Asks("tenants.TENANT_USAGE"),
    ),
)
