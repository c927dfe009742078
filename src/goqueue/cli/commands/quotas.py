"""Commands about quotas."""

from goqueue.cli.table import ASKS, Asks, Command, Shown, flag

_ENTITY = (
    flag(
        "--user",
        metavar="NAME",
        help="a user, or an API key by its id; '<default>': each that has none of its own (default: anybody)",
    ),
    flag(
        "--client-id",
        metavar="ID",
        help="what a client calls itself; '<default>': each that has none of its own (default: any client)",
    ),
    flag("--ip", metavar="ADDRESS", help="an address, instead of these; '<default>': each that has none of its own"),
)
_LIMITS = (
    Shown("PRODUCER_BYTE_RATE", "producer_byte_rate"),
    Shown("CONSUMER_BYTE_RATE", "consumer_byte_rate"),
    Shown("REQUEST_RATE", "request_rate"),
    Shown("REQUEST_PERCENTAGE", "request_percentage"),
    Shown("CONNECTION_CREATION_RATE", "connection_creation_rate"),
    Shown("CONTROLLER_MUTATION_RATE", "controller_mutation_rate"),
)

QUOTAS = (
    Command(
        "quota set",
        "limit what a user, a client or an address may do in a second",
        "quotas.set_quota",
        (
            *_ENTITY,
            flag("--producer-byte-rate", metavar="BYTES", help="bytes a second that may be published; none: no limit"),
            flag("--consumer-byte-rate", metavar="BYTES", help="bytes a second that may be read; none: no limit"),
            flag("--request-rate", metavar="COUNT", help="requests a second; none: no limit"),
            flag("--request-percentage", metavar="PERCENT", help="of the time of the node's event loop"),
            flag("--connection-creation-rate", metavar="COUNT", help="new connections a second, with --ip"),
            flag("--controller-mutation-rate", metavar="COUNT", help="partitions a second that are made or deleted"),
        ),
        examples=(
            "goqueue quota set --user alice --producer-byte-rate 1048576",
            "goqueue quota set --client-id '<default>' --request-rate 100",
            "goqueue quota set --ip '<default>' --connection-creation-rate 20",
        ),
    ),
    Command(
        "quota list",
        "list the quotas",
        ASKS,
        examples=("goqueue quota list",),
        asks=Asks(
            "quotas.LIST_QUOTAS",
            rows="quotas",
            columns=(Shown("USER", "user"), Shown("CLIENT_ID", "client_id"), Shown("IP", "ip"), *_LIMITS),
            nothing="no quotas yet",
        ),
    ),
    Command(
        "quota describe",
        "what holds for a client of a user, of all quotas that it is part of",
        "quotas.describe_quota",
        _ENTITY,
        examples=("goqueue quota describe --user alice --client-id billing",),
    ),
    Command(
        "quota delete",
        "take all limits of a quota away",
        "quotas.delete_quota",
        _ENTITY,
        examples=("goqueue quota delete --user alice",),
    ),
)
