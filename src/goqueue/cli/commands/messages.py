"""Commands that put messages in and take messages out."""

from goqueue.cli.table import Command, flag, place
from goqueue.cli.values import duration_ms, moment_ms, number, pair

_TOPIC = place("topic", "name of the topic", names_of="topics")
LANES = ("critical", "high", "normal", "low", "background", "0", "1", "2", "3", "4")

PRODUCE = Command(
    "produce",
    "publish messages",
    "produce.produce",
    (
        _TOPIC,
        place("value", "the message; - or nothing: from stdin, one a line", is_optional=True),
        flag("-m", "--message", metavar="TEXT", is_repeated=True, help="the message; may be said again"),
        flag("-f", "--file", metavar="FILE", help="messages from a file, one a line; -: stdin"),
        flag("--json", help="every line is a JSON object, and one that is not is refused"),
        flag("--text", help="every line is a value, also one that looks like JSON"),
        flag("-k", "--key", metavar="KEY", help="key of the messages"),
        flag(
            "-H",
            "--header",
            metavar="NAME=VALUE",
            kind=pair,
            is_repeated=True,
            help="a header; may be said again",
        ),
        flag("-p", "--partition", metavar="N", kind=number(), help="where to (default: by key, or any)"),
        flag("--priority", metavar="LANE", choices=LANES, help="critical, high, normal, low or background"),
        flag(
            "-d", "--delay", metavar="TIME", kind=duration_ms, one_of="due", help="deliver so long from now, such as 5m"
        ),
        flag(
            "--at",
            "--deliver-at",
            metavar="TIME",
            kind=moment_ms,
            one_of="due",
            dest="at",
            help="deliver then: RFC 3339, or +2h",
        ),
        flag("--ttl", metavar="TIME", kind=duration_ms, help="worthless to a queue after so long"),
    ),
    about=(
        "A line that is a JSON object with the field value (or value_base64) is a message with its key, headers,\n"
        "priority, delay, deliver_at, ttl, timestamp and partition; a value of null is a tombstone. What\n"
        "`goqueue consume -o json` writes is read back byte for byte: keys, values, headers and timestamps.\n"
        "Any other line is a value as it stands. Empty lines, and lines that begin with #, are passed over in files."
    ),
    examples=(
        "goqueue produce orders -m 'three apples' -k customer-7",
        "goqueue produce orders 'remind me' --delay 5m --priority high -H source=cli",
        "goqueue produce orders -f orders.jsonl",
        "tail -F app.log | goqueue produce logs",
    ),
    needs_loop=True,
)

CONSUME = Command(
    "consume",
    "show messages of a topic",
    "consume.consume",
    (
        _TOPIC,
        flag("-p", "--partition", metavar="N", kind=number(), help="only this one (default: all, by time)"),
        flag("-f", "--follow", help="wait for more, until Ctrl-C"),
        flag("-g", "--group", metavar="GROUP", names_of="groups", help="take messages from the queue of this group"),
        flag("--from-beginning", one_of="start", help="from the oldest on (default, unless with --follow)"),
        flag("--from-latest", one_of="start", help="only what comes from now on (default with --follow)"),
        flag("--offset", metavar="N", kind=number(), one_of="start", help="from this offset on; needs --partition"),
        flag("--from-time", metavar="TIME", kind=moment_ms, one_of="start", help="from then on: RFC 3339, or -2h"),
        flag("--to-time", metavar="TIME", kind=moment_ms, help="only messages before then"),
        flag("-n", "--limit", metavar="N", kind=number(1), help="so many, then end (default: all there are)"),
        flag(
            "--ack",
            metavar="auto|none|nack|reject",
            choices=("auto", "none", "nack", "reject"),
            help="with --group, what becomes of messages once they are shown: done, left to come again when their"
            " lease ends, given back at once, or made dead letters (default auto)",
        ),
        flag("--lease", metavar="TIME", kind=duration_ms, help="with --group: hold messages so long"),
        flag("-k", "--key", metavar="KEY", help="only messages with this key"),
        flag("--contains", metavar="TEXT", help="only messages whose value has this in it"),
        flag(
            "-H", "--header", metavar="NAME=VALUE", kind=pair, is_repeated=True, help="only messages with this header"
        ),
        flag("--priority", metavar="LANE", choices=LANES[:5], help="only messages of this priority"),
        flag("-D", "--decode", help="values that name a schema of the registry are shown as JSON"),
        flag(
            "-F",
            "--format",
            metavar="TEXT",
            help="show each message as this text, with %t topic, %p partition, %o offset, %k key, %s value, %h headers,"
            " %T timestamp in ms, %P priority, %K and %S lengths, %J everything as JSON; \\n is a new line",
        ),
        flag("--wait", metavar="TIME", kind=duration_ms, help="with --group: wait so long for messages (default 1s)"),
    ),
    about=(
        "json gives one object a line, which `goqueue produce` reads back; value gives only the values, as they are.\n"
        "Without --group nothing is changed by reading. With it, a message is settled after it was written out."
    ),
    examples=(
        "goqueue consume orders -p 0 --from-beginning",
        "goqueue consume orders --follow",
        "goqueue consume orders --from-time -2h --to-time -1h -o json",
        "goqueue consume jobs --group workers --limit 10",
        "goqueue consume orders --key customer-7 --format '%p/%o %s\\n'",
        "goqueue consume orders --decode --limit 5",
    ),
    outputs=("table", "json", "yaml", "value"),
    needs_loop=True,
)

MESSAGES = (PRODUCE, CONSUME)
