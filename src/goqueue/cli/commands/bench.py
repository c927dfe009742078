"""Commands that measure."""

from argparse import ArgumentTypeError

from goqueue.cli.bench.arguments import (
    BATCH_BYTES_MAX,
    DEFAULT_MESSAGES,
    MESSAGES_MAX,
    PARTITIONS_MAX,
    SUMMARIES,
    VALUE_BYTES_MAX,
)
from goqueue.cli.table import Arg, Command, flag
from goqueue.cli.values import MECHANISMS, number


def _address(text: str) -> str:
    from goqueue.node.values import AddressKind

    kind = AddressKind()
    try:
        return str(kind.parse(text))
    except ValueError:
        raise ArgumentTypeError(f"{text!r}: expected {kind.expected}") from None


SECURITY = (
    flag("--tls", help="that broker speaks TLS"),
    flag("--ca", metavar="FILE", help="authority of its certificate (PEM)"),
    flag("--cert", metavar="FILE", help="certificate to show to it (PEM)"),
    flag("--cert-key", metavar="FILE", help="key of that certificate (PEM)"),
    flag("--cert-key-password-file", metavar="FILE", help="file with the password of that key, if it has one"),
    flag("--api-key-file", metavar="FILE", help="file with an API key in its first line"),
    flag("--user", metavar="NAME", dest="login_user", help="who logs in, by SASL"),
    flag(
        "--password-file",
        metavar="FILE",
        dest="login_password_file",
        help="file with the password of --user in its first line",
    ),
    flag(
        "--sasl",
        metavar="MECHANISM",
        dest="login_sasl",
        choices=MECHANISMS,
        help="of --user: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512 (default SCRAM-SHA-256)",
    ),
)
"""What a broker that `--kafka` names may want."""


def _args(kind: str) -> tuple[Arg, ...]:
    messages = DEFAULT_MESSAGES[kind]
    batch = flag(
        "--batch", metavar="N", kind=number(1, BATCH_BYTES_MAX), help="messages in a batch (default: as they come)"
    )
    return (
        flag("--kafka", metavar="HOST:PORT", kind=_address, help="the broker to measure (default: one of its own)"),
        flag("-c", "--context", metavar="NAME", names_of="contexts", help="measure the broker of this context"),
        *SECURITY,
        flag("--directory", metavar="DIR", help="where its own broker keeps its data (default: a temporary directory)"),
        flag(
            "--messages",
            metavar="N",
            kind=number(1, MESSAGES_MAX),
            default=messages,
            help=f"how many (default {messages})",
        ),
        flag("--bytes", metavar="N", kind=number(1, VALUE_BYTES_MAX), default=100, help="size of each (default 100)"),
        *(() if kind == "latency" else (batch,)),
        flag(
            "--partitions",
            metavar="N",
            kind=number(1, PARTITIONS_MAX),
            default=1,
            help="of the topic (default 1)",
        ),
        flag(
            "--durability",
            metavar="os|disk",
            choices=("os", "disk"),
            help="of the topic (default: what the broker gives to a new one)",
        ),
    )


BENCH = tuple(
    Command(
        f"bench {kind}",
        f"measure {summary}",
        "bench.run",
        _args(kind),
        about="Figures go to stdout.",
        examples=(f"goqueue bench {kind} --messages {DEFAULT_MESSAGES[kind] // 10}",),
        outputs=("table", "json"),
        is_remote=False,
    )
    for kind, summary in SUMMARIES.items()
)
