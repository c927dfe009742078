"""Commands about consumer groups."""

from goqueue.cli.table import ASKS, OUTPUTS_OF_NAMES, Asks, Command, Shown, flag, place
from goqueue.cli.values import duration_ms, moment_ms, number, offset_place

_GROUP = place("group", "name of the group", names_of="groups")

GROUP_COMMANDS = (
    Command(
        "group list",
        "list the groups",
        "groups.list_groups",
        examples=("goqueue group list",),
        outputs=OUTPUTS_OF_NAMES,
        is_watched=True,
    ),
    Command(
        "group describe",
        "show the members of a group, and how far it is behind",
        "groups.describe",
        (_GROUP,),
        examples=("goqueue group describe billing",),
        is_watched=True,
    ),
    Command(
        "group delete",
        "forget all that a group has committed and settled",
        "groups.delete",
        (
            _GROUP,
            flag("-y", "--yes", help="do not ask first"),
            flag("-f", "--force", help="do not ask first, and turn its members out"),
        ),
        examples=("goqueue group delete billing --yes",),
    ),
    Command(
        "group offsets",
        "show where a group goes on reading",
        "groups.offsets",
        (_GROUP, flag("--topic", metavar="TOPIC", names_of="topics", help="only of this one")),
        examples=("goqueue group offsets billing",),
        is_watched=True,
    ),
    Command(
        "group pause",
        "deliver nothing to a queue group until it is resumed",
        "groups.pause",
        (_GROUP,),
        about="What its consumers hold already they may settle. Messages are taken in as before.",
        examples=("goqueue group pause packers",),
    ),
    Command(
        "group resume",
        "deliver to a queue group again",
        "groups.resume",
        (_GROUP,),
        examples=("goqueue group resume packers",),
    ),
    Command(
        "group settle",
        "settle a message for a queue group by its place, whoever holds it",
        ASKS,
        (
            _GROUP,
            place("topic", "name of the topic", names_of="topics"),
            place("place", "PARTITION/OFFSET of the message", kind=offset_place, fields=("partition", "offset")),
            place(
                "action",
                "ack: it is done; release: to the next consumer now; reject: to the dead letters; extend: held longer",
            ),
            flag(
                "--for",
                metavar="TIME",
                kind=duration_ms,
                dest="hold",
                fields=("timeout",),
                help="of extend: so long from now, such as 10m",
            ),
            flag("--reason", metavar="WHY", help="for those who look at the dead letter"),
        ),
        examples=(
            "goqueue group settle packers orders 0/17 release",
            "goqueue group settle packers orders 0/17 extend --for 10m",
        ),
        asks=Asks("acks.SETTLE_PLACE", says="{topic}/{partition}/{offset}: {action} for {group}"),
    ),
    Command(
        "group fork",
        "copy what a queue group has settled to a new group that goes its own way",
        ASKS,
        (_GROUP, place("name", "name of the fork")),
        examples=("goqueue group fork packers packers-next",),
        asks=Asks("replays.FORK", says="{fork} is a fork of {group}"),
    ),
    Command(
        "group forks",
        "show the forks of a queue group, and by how much each differs from it",
        ASKS,
        (_GROUP,),
        examples=("goqueue group forks packers",),
        asks=Asks(
            "replays.LIST_FORKS",
            rows="forks",
            columns=(
                Shown("FORK", "fork"),
                Shown("ONLY SETTLED BY THE GROUP", "only_group"),
                Shown("ONLY SETTLED BY THE FORK", "only_fork"),
            ),
            nothing="it has no forks",
        ),
    ),
    Command(
        "group compare",
        "show what only one of two queue groups has settled",
        ASKS,
        (_GROUP, place("other", "the other one", names_of="groups")),
        examples=("goqueue group compare packers packers-next",),
        asks=Asks(
            "replays.COMPARE",
            rows="differences",
            columns=(
                Shown("PARTITION", "{topic}/{partition}"),
                Shown("ONLY IN THE GROUP", "only_group"),
                Shown("ONLY IN THE OTHER", "only_with"),
            ),
            nothing="both have settled the same",
        ),
    ),
    Command(
        "group promote",
        "let a queue group take over what its fork has settled; the fork is gone then",
        ASKS,
        (_GROUP, place("fork", "name of the fork", names_of="groups")),
        examples=("goqueue group promote packers packers-next",),
        asks=Asks("replays.PROMOTE", says="{group} goes on as {fork} did"),
    ),
    Command(
        "group reset-offsets",
        "let a group go on from elsewhere",
        "groups.reset_offsets",
        (
            _GROUP,
            flag("--topic", metavar="TOPIC", names_of="topics", is_required=True, help="of this topic"),
            flag("-p", "--partition", metavar="N", kind=number(), help="only this one (default: all)"),
            flag("--to-earliest", one_of="to", is_required=True, help="to the oldest message"),
            flag("--to-latest", one_of="to", is_required=True, help="to the end"),
            flag("--to-offset", metavar="N", kind=number(), one_of="to", is_required=True, help="to this offset"),
            flag(
                "--to-time",
                "--to-timestamp",
                metavar="TIME",
                kind=moment_ms,
                one_of="to",
                dest="to_time",
                is_required=True,
                help="to this time: RFC 3339, or -2h",
            ),
            flag("--dry-run", help="only show what would happen"),
            flag("--live", help="turn members out first; they begin there when they come back"),
        ),
        examples=(
            "goqueue group reset-offsets billing --topic orders --to-earliest",
            "goqueue group reset-offsets billing --topic orders --to-time -2h --dry-run",
        ),
    ),
)
