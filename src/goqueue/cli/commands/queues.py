"""Commands about what queues bring with them: dead letters, delays, schedules, replays."""

from goqueue.cli.commands.messages import LANES
from goqueue.cli.table import ASKS, Asks, Command, Shown, flag, place
from goqueue.cli.values import duration_ms, moment_ms, number, offset_place, pair, place_in_log

_TOPIC = place("topic", "name of the topic", names_of="topics")
_PLACE = place("place", "PARTITION/OFFSET, as the list shows it", kind=offset_place, fields=("partition", "offset"))
_FILTER = (
    flag("--key", metavar="KEY", help="only those with this key"),
    flag("--contains", metavar="TEXT", help="only those whose value holds this text"),
    flag("--header", metavar="NAME=VALUE", kind=pair, help="only those with this header"),
    flag("--lane", metavar="LANE", help="only of this lane, or of these, with commas"),
)
_REASON = flag("--reason", metavar="WHY", help="only those that died so: attempts, rejected or expired")
_RATE = flag(
    "--rate", metavar="N", kind=number(0, 1_000_000), default=0, help="messages a second (default: as fast as can be)"
)
_DRY_RUN = flag("--dry-run", help="only count them")

_DEAD_LETTERS = (
    Command(
        "dlq list",
        "list dead letters of a topic",
        "dlq.list_letters",
        (
            _TOPIC,
            flag("-n", "--limit", metavar="N", kind=number(1), default=100, help="so many at most (default 100)"),
            _REASON,
            *_FILTER,
        ),
        examples=("goqueue dlq list orders --reason rejected",),
        is_watched=True,
    ),
    Command(
        "dlq show",
        "show one dead letter: the message, why it died, and when",
        "dlq.show",
        (_TOPIC, _PLACE),
        examples=("goqueue dlq show orders 0/17",),
    ),
    Command(
        "dlq redrive",
        "send dead letters back to work",
        "dlq.redrive",
        (
            _TOPIC,
            flag("--to", metavar="TOPIC", names_of="topics", help="to this one (default: each to where it came from)"),
            _REASON,
            *_FILTER,
            flag(
                "--place",
                metavar="PARTITION/OFFSET",
                kind=offset_place,
                is_repeated=True,
                dest="places",
                help="only this one, as the list shows it; may be said again",
            ),
            _RATE,
            flag(
                "--redrives-max",
                metavar="N",
                kind=number(1, 1_000_000),
                default=3,
                help="leave those where they are that were sent back so often (default 3)",
            ),
            _DRY_RUN,
        ),
        examples=("goqueue dlq redrive orders --dry-run", "goqueue dlq redrive orders --reason attempts --rate 100"),
        needs_loop=True,
    ),
    Command(
        "dlq stop",
        "stop a redrive: what was not sent back yet stays a dead letter",
        ASKS,
        (_TOPIC,),
        examples=("goqueue dlq stop orders",),
        asks=Asks("dead_letters.STOP_REDRIVE", says="redrive of {topic}: {state}, {redriven} sent back"),
    ),
    Command(
        "dlq discard",
        "deal with one dead letter by doing nothing: it is not listed any more",
        ASKS,
        (_TOPIC, _PLACE),
        examples=("goqueue dlq discard orders 0/17",),
        asks=Asks(
            "dead_letters.DISCARD_DEAD_LETTER",
            says="discarded {topic}/{partition}/{offset}",
            keeps=("topic", "partition", "offset", "discarded"),
        ),
    ),
    Command(
        "dlq purge",
        "throw all dead letters of a topic away, for good",
        "dlq.purge",
        (_TOPIC, flag("-f", "--force", help="do not ask first")),
        examples=("goqueue dlq purge orders --force",),
    ),
)

_DELAYS = (
    Command(
        "delay list",
        "list messages that wait for their time, the next to come first",
        ASKS,
        (
            _TOPIC,
            flag("-n", "--limit", metavar="N", kind=number(1, 1000), default=100, help="so many at most (default 100)"),
        ),
        examples=("goqueue delay list orders",),
        is_watched=True,
        asks=Asks(
            "delays.LIST_DELAYED",
            rows="messages",
            columns=(
                Shown("PLACE", "{partition}/{offset}"),
                Shown("DELIVER AT", "deliver_at"),
                Shown("IN", "time_remaining"),
                Shown("STATE", "state"),
            ),
            nothing="nothing waits for its time",
        ),
    ),
    Command(
        "delay cancel",
        "never publish a message that waits",
        ASKS,
        (_TOPIC, _PLACE),
        examples=("goqueue delay cancel orders 0/3",),
        asks=Asks(
            "delays.CANCEL_DELAYED",
            says="cancelled {topic}/{partition}/{offset}",
            keeps=("topic", "partition", "offset", "cancelled"),
        ),
    ),
    Command(
        "delay reschedule",
        "publish a message that waits at another time",
        ASKS,
        (
            _TOPIC,
            _PLACE,
            flag(
                "-d",
                "--delay",
                metavar="TIME",
                kind=duration_ms,
                one_of="due",
                is_required=True,
                help="so long from now, such as 5m",
            ),
            flag(
                "--at",
                metavar="TIME",
                kind=moment_ms,
                one_of="due",
                is_required=True,
                fields=("deliver_at",),
                help="then: RFC 3339, or +2h",
            ),
        ),
        examples=("goqueue delay reschedule orders 0/3 --delay 10m",),
        asks=Asks(
            "delays.RESCHEDULE_DELAYED",
            says="{topic}/{partition}/{offset} comes at {deliver_at}, in {time_remaining}",
        ),
    ),
)

_SCHEDULES = (
    Command(
        "schedule list",
        "list the schedules",
        ASKS,
        examples=("goqueue schedule list",),
        is_watched=True,
        asks=Asks(
            "delays.LIST_SCHEDULES",
            rows="schedules",
            columns=(
                Shown("NAME", "name"),
                Shown("TOPIC", "topic"),
                Shown("CRON", "cron"),
                Shown("TIMEZONE", "timezone"),
                Shown("NEXT RUN", "next_run"),
                Shown("LAST RUN", "last_run"),
                Shown("PAUSED", "paused"),
            ),
            nothing="no schedules yet",
        ),
    ),
    Command(
        "schedule set",
        "publish a message whenever a cron expression says so",
        ASKS,
        (
            place("name", "name of the schedule; one of this name is replaced"),
            _TOPIC,
            flag("--cron", metavar="CRON", is_required=True, help="when, such as '0 7 * * *'"),
            flag("-m", "--message", metavar="TEXT", is_required=True, fields=("value",), help="the message"),
            flag("--timezone", metavar="ZONE", default="UTC", help="such as Europe/Berlin (default UTC)"),
            flag("-k", "--key", metavar="KEY", help="key of the message"),
            flag(
                "-H",
                "--header",
                metavar="NAME=VALUE",
                kind=pair,
                is_repeated=True,
                fields=("headers",),
                help="a header",
            ),
            flag("--priority", metavar="LANE", choices=LANES, help="critical, high, normal, low or background"),
        ),
        examples=("goqueue schedule set report jobs --cron '0 7 * * *' -m 'make the report' --timezone Europe/Berlin",),
        asks=Asks("delays.STORE_SCHEDULE", says="schedule {name} publishes to {topic} next at {next_run}"),
    ),
    Command(
        "schedule run",
        "publish its message once, now",
        ASKS,
        (place("name", "name of the schedule"),),
        examples=("goqueue schedule run report",),
        asks=Asks("delays.RUN_SCHEDULE", says="schedule {name} published {topic}/{partition}/{offset}"),
    ),
    Command(
        "schedule pause",
        "let it run no more until it is resumed",
        ASKS,
        (place("name", "name of the schedule"),),
        examples=("goqueue schedule pause report",),
        asks=Asks("delays.PAUSE_SCHEDULE", says="schedule {name} is paused"),
    ),
    Command(
        "schedule resume",
        "let it run again, from its next time on",
        ASKS,
        (place("name", "name of the schedule"),),
        examples=("goqueue schedule resume report",),
        asks=Asks("delays.RESUME_SCHEDULE", says="schedule {name} runs next at {next_run}"),
    ),
    Command(
        "schedule delete",
        "publish it no more",
        ASKS,
        (place("name", "name of the schedule"),),
        examples=("goqueue schedule delete report",),
        asks=Asks("delays.DELETE_SCHEDULE", says="deleted schedule {name}", keeps=("name", "deleted")),
    ),
)

_REPLAY = Command(
    "replay",
    "deliver part of a topic to a queue group again",
    "replay.replay",
    (
        place("group", "name of the group", names_of="groups"),
        _TOPIC,
        flag(
            "--from",
            metavar="PLACE",
            kind=place_in_log,
            is_required=True,
            dest="start",
            help="earliest, an offset, or a time: RFC 3339, or -2h",
        ),
        flag(
            "--to",
            metavar="PLACE",
            kind=place_in_log,
            default="latest",
            dest="stop",
            help="up to there, without it (default latest)",
        ),
        *_FILTER,
        _RATE,
        flag("--fork-as", metavar="GROUP", help="into a copy of the group; the group itself stays as it is"),
        _DRY_RUN,
    ),
    examples=(
        "goqueue replay workers orders --from -2h --dry-run",
        "goqueue replay workers orders --from 100 --to 200 --fork-as audit",
    ),
    needs_loop=True,
)

QUEUES = (*_DEAD_LETTERS, *_DELAYS, *_SCHEDULES, _REPLAY)
