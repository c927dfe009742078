"""Commands that tell what happened to messages, and how a node is."""

from goqueue.cli.table import ASKS, Asks, Command, Shown, flag, place
from goqueue.cli.values import duration_ms, moment_ms, number

_LIMIT = flag("-n", "--limit", metavar="N", kind=number(1, 1000), default=100, help="so many at most (default 100)")

TRACE_COLUMNS = (
    Shown("TRACE", "trace_id"),
    Shown("MESSAGE", "{topic}/{partition}/{offset}"),
    Shown("STATUS", "status"),
    Shown("START", "start_time"),
    Shown("TOOK", "{duration_ms} ms", is_number=True),
    Shown("STEPS", "span_count", is_number=True),
)
_LISTED = Asks("traces.LIST_TRACES", rows="traces", columns=TRACE_COLUMNS, nothing="no traces found")

TRACES = (
    Command(
        "trace list",
        "list the journeys of the latest messages",
        ASKS,
        (_LIMIT,),
        examples=("goqueue trace list -n 50",),
        is_watched=True,
        asks=_LISTED,
    ),
    Command(
        "trace get",
        "show all that happened in a trace",
        "traces.get",
        (place("id", "id of the trace, 32 hexadecimal digits"),),
        examples=("goqueue trace get 4bf92f3577b34da6a3ce929d0e0e4736",),
    ),
    Command(
        "trace search",
        "look for journeys by topic, group, time, status or key",
        "traces.search",
        (
            flag("--topic", metavar="TOPIC", names_of="topics", help="of this topic"),
            flag("--partition", metavar="N", kind=number(), help="of this partition"),
            flag(
                "--consumer-group",
                metavar="GROUP",
                names_of="groups",
                dest="consumer_group",
                help="to which this group did something",
            ),
            flag("--start", metavar="TIME", kind=moment_ms, help="something happened after then: RFC 3339, or -2h"),
            flag("--end", metavar="TIME", kind=moment_ms, help="something happened before then"),
            flag(
                "--status",
                metavar="completed|error|pending",
                choices=("completed", "error", "pending"),
                help="how far they are",
            ),
            flag("--key", metavar="KEY", help="messages with this key; needs --topic"),
            _LIMIT,
        ),
        examples=("goqueue trace search --topic orders --status error", "goqueue trace search --start -10m"),
        asks=_LISTED._replace(operation="traces.SEARCH_TRACES"),
    ),
    Command(
        "trace stats",
        "show how much is remembered",
        ASKS,
        examples=("goqueue trace stats",),
        is_watched=True,
        asks=Asks("traces.TRACE_STATS"),
    ),
    Command(
        "why",
        "say where a message is, and why it is not delivered yet",
        "traces.why",
        (
            place("message", "TOPIC/PARTITION/OFFSET; with --key only the topic"),
            flag("--key", metavar="KEY", help="the latest message of a topic with this key"),
        ),
        examples=("goqueue why orders/0/17", "goqueue why orders --key customer-7"),
        is_watched=True,
    ),
)

CLUSTER = (
    Command(
        "top",
        "watch which topics and groups are busy, and who falls behind",
        "top.top",
        (
            flag("--every", metavar="TIME", kind=duration_ms, help="how often to look (default 2s)"),
            flag("-n", "--times", metavar="N", kind=number(1), help="look so often, then end (default: until Ctrl-C)"),
        ),
        about="Topics by messages a second, groups by lag. Rates need two looks.",
        examples=("goqueue top", "goqueue top --every 5s -n 2 -o json"),
        needs_loop=True,
    ),
    Command(
        "cluster info",
        "show what this cluster is and holds",
        "cluster.info",
        examples=("goqueue cluster info",),
        is_watched=True,
    ),
    Command(
        "cluster health",
        "say whether all is in service",
        "cluster.health",
        about="Ends with 1 if something is out of service.",
        examples=("goqueue cluster health",),
        is_watched=True,
    ),
)
