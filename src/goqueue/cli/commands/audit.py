"""The command about the audit trail."""

from goqueue.cli.table import ASKS, Asks, Command, Shown, flag

AUDIT = (
    Command(
        "audit",
        "who changed what, who was refused, and who failed to log in",
        ASKS,
        (
            flag("--offset", metavar="NUMBER", kind=int, help="begin there (default: with the newest)"),
            flag("--limit", metavar="COUNT", kind=int, default=100, help="so many records at most (default 100)"),
            flag("--principal", metavar="NAME", help="of these only, such as User:alice"),
            flag("--node", metavar="ID", kind=int, help="of this node only (default: of all nodes, by time)"),
        ),
        about="Each node has its own trail. Offsets are of one trail: with --offset say --node, too.",
        examples=("goqueue audit", "goqueue audit --principal User:alice --limit 20", "goqueue audit --node 2"),
        asks=Asks(
            "audit.READ_AUDIT",
            rows="entries",
            columns=(
                Shown("NODE", "node", is_number=True),
                Shown("OFFSET", "offset", is_number=True),
                Shown("TIME", "at_ms"),
                Shown("TENANT", "tenant"),
                Shown("PRINCIPAL", "principal"),
                Shown("HOST", "host"),
                Shown("API", "api"),
                Shown("OPERATION", "operation"),
                Shown("RESOURCE", "resource"),
                Shown("OUTCOME", "outcome"),
                Shown("COUNT", "count", is_number=True),
                Shown("HASH_OK", "hash_ok"),
            ),
            nothing="nothing was written down yet",
            silent="not_answered",
        ),
    ),
)
