"""Commands about topics."""

from goqueue.cli.table import ASKS, OUTPUTS_OF_NAMES, Asks, Command, Shown, flag, place
from goqueue.cli.values import moment, new_topic, number, pair, retention_bytes, retention_ms

_NAME = place("name", "name of the topic", names_of="topics")
_PARTITIONS_MAX = 10_000
_OPTIONS = (
    flag(
        "-r",
        "--retention",
        metavar="TIME",
        kind=retention_ms,
        help="how long messages are kept, such as 168h; forever: without end",
    ),
    flag(
        "--retention-bytes",
        metavar="SIZE",
        kind=retention_bytes,
        help="how much of a partition is kept, such as 10GiB; forever: all",
    ),
    flag(
        "--set",
        metavar="NAME=VALUE",
        kind=pair,
        is_repeated=True,
        help="an option by its name, such as lease.ms=10000; may be said again",
    ),
)

_TRIMMING = (
    flag("-p", "--partition", metavar="N", kind=number(), help="only of this one (default: all)"),
    flag("-f", "--force", help="do not ask first"),
    flag("--dry-run", help="only show what would go"),
)

TOPICS = (
    Command(
        "topic list",
        "list the topics",
        "topics.list_topics",
        (flag("--all", help="those for dead letters too"),),
        examples=("goqueue topic list", "goqueue topic list -o json"),
        outputs=OUTPUTS_OF_NAMES,
        is_watched=True,
    ),
    Command(
        "topic create",
        "make a topic",
        "topics.create",
        (
            place("name", "name of the topic", kind=new_topic),
            flag(
                "-p",
                "--partitions",
                metavar="N",
                kind=number(1, _PARTITIONS_MAX),
                help="how many (default: as the node says)",
            ),
            *_OPTIONS,
            flag("--if-not-exists", help="leave a topic alone that is there already"),
        ),
        examples=("goqueue topic create orders -p 6 -r 168h", "goqueue topic create jobs --set lease.ms=10000"),
    ),
    Command(
        "topic describe",
        "show what a topic is and holds",
        "topics.describe",
        (_NAME,),
        examples=("goqueue topic describe orders",),
        is_watched=True,
    ),
    Command(
        "topic alter",
        "change options of a topic, or give it more partitions",
        "topics.alter",
        (
            _NAME,
            flag(
                "-p",
                "--partitions",
                metavar="N",
                kind=number(1, _PARTITIONS_MAX),
                help="how many it shall have; never fewer than now",
            ),
            *_OPTIONS,
            flag("--unset", metavar="NAME", is_repeated=True, help="take an option back to its default"),
        ),
        examples=("goqueue topic alter orders -r 336h", "goqueue topic alter orders --partitions 12"),
    ),
    Command(
        "topic pause",
        "deliver nothing of a topic to queue groups until it is resumed",
        "topics.pause",
        (_NAME,),
        about="What consumers hold already they may settle. Messages are taken in, and streams are read, as before.",
        examples=("goqueue topic pause orders",),
    ),
    Command(
        "topic resume",
        "deliver a topic to queue groups again",
        "topics.resume",
        (_NAME,),
        examples=("goqueue topic resume orders",),
    ),
    Command(
        "topic compact",
        "compact a topic now: of every key only the last message stays",
        ASKS,
        (_NAME._replace(fields=("topic",)), flag("--dry-run", help="only count what would go")),
        about="A node does this by itself when it is worth it. The option cleanup.policy must say compact.",
        examples=("goqueue topic compact orders --dry-run",),
        asks=Asks(
            "admin.COMPACT_TOPIC",
            rows="results",
            columns=(
                Shown("PARTITION", "partition"),
                Shown("COMPACTED", "compacted"),
                Shown("BEFORE", "records_before", is_number=True),
                Shown("AFTER", "records_after", is_number=True),
                Shown("REMOVED", "records_removed", is_number=True),
            ),
        ),
    ),
    Command(
        "topic trim",
        "throw away the oldest messages of a topic, for good",
        "topics.trim",
        (
            _NAME,
            flag(
                "--before-time",
                metavar="TIME",
                kind=moment,
                one_of="before",
                is_required=True,
                help="all that is older: RFC 3339, or -24h",
            ),
            flag(
                "--offset",
                metavar="N",
                kind=number(),
                one_of="before",
                is_required=True,
                help="all below this offset; needs --partition",
            ),
            *_TRIMMING,
        ),
        about="Groups go on with the oldest message that is left. Messages that wait for their time stay.",
        examples=(
            "goqueue topic trim orders --before-time -24h --force",
            "goqueue topic trim orders -p 0 --offset 1000 --dry-run",
        ),
    ),
    Command(
        "topic purge",
        "throw away all messages of a topic, for good, and keep the topic",
        "topics.purge",
        (_NAME, *_TRIMMING),
        examples=("goqueue topic purge orders --force",),
    ),
    Command(
        "topic delete",
        "delete a topic and all that is in it, for good",
        "topics.delete",
        (_NAME, flag("-f", "--force", help="do not ask first")),
        examples=("goqueue topic delete orders --force",),
    ),
)
