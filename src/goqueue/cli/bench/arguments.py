"""What can be said to `goqueue bench`. Light, because every start of the command reads it."""

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING

from goqueue.cli.exits import EXIT_USAGE, complain
from goqueue.node.values import AddressKind

if TYPE_CHECKING:
    from argparse import _SubParsersAction

MESSAGES_MAX = 10**9
PARTITIONS_MAX = 1000
BATCH_BYTES_MAX = 1_000_000
"""Of one batch: what librdkafka and a broker take unless told otherwise."""
RECORD_BYTES_EXTRA = 20
"""Around the value of a record, at most, and room for the header of its batch."""
VALUE_BYTES_MAX = BATCH_BYTES_MAX - 1000

DEFAULT_MESSAGES = {"produce": 1_000_000, "consume": 1_000_000, "latency": 5_000}
SUMMARIES = {
    "produce": "how fast messages are taken, and what each costs the broker",
    "consume": "how fast messages are handed out, and what each costs the broker",
    "latency": "how long one message takes to its acknowledgement, and to a consumer that waits for it",
}


def add_bench(commands: "_SubParsersAction[ArgumentParser]") -> None:
    bench = commands.add_parser(
        "bench",
        help="measure a broker",
        description="Measure a broker under the load of a real Kafka client, librdkafka.",
        allow_abbrev=False,
    )
    bench.set_defaults(run=lambda _: complain(bench.format_help().rstrip(), EXIT_USAGE))
    kinds = bench.add_subparsers(title="what to measure", metavar="WHAT")
    for kind, summary in SUMMARIES.items():
        _add_kind(kinds, kind, summary)


def _add_kind(kinds: "_SubParsersAction[ArgumentParser]", kind: str, summary: str) -> None:
    parser = kinds.add_parser(
        kind, help=summary, description=f"Measure {summary}. Figures go to stdout.", allow_abbrev=False
    )
    parser.set_defaults(run=_run, kind=kind, batch=None, refuse=parser.error)
    add = parser.add_argument
    add("--kafka", type=_address, metavar="HOST:PORT", help="the broker to measure (default: one of its own)")
    add("--directory", metavar="DIR", help="where its own broker keeps its data (default: a temporary directory)")
    messages = DEFAULT_MESSAGES[kind]
    add("--messages", type=_number(MESSAGES_MAX), default=messages, metavar="N", help=f"how many (default {messages})")
    add("--bytes", type=_number(VALUE_BYTES_MAX), default=100, metavar="N", help="size of each (default 100)")
    if kind != "latency":
        add("--batch", type=_number(BATCH_BYTES_MAX), metavar="N", help="messages in a batch (default: as they come)")
    add("--partitions", type=_number(PARTITIONS_MAX), default=1, metavar="N", help="of the topic (default 1)")
    add("--durability", choices=("os", "disk"), help="of the topic (default: what the broker gives to a new one)")
    add("-o", "--output", choices=("table", "json"), default="table", help="shape of the figures (default table)")


def _number(at_most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = 0
        if not 1 <= value <= at_most:
            raise ArgumentTypeError(f"{text!r}: expected a whole number from 1 to {at_most}")
        return value

    return parse


def _address(text: str) -> str:
    kind = AddressKind()
    try:
        return str(kind.parse(text))
    except ValueError:
        raise ArgumentTypeError(f"{text!r}: expected {kind.expected}") from None


def _run(given: Namespace) -> int:
    if given.batch is not None and given.batch * (given.bytes + RECORD_BYTES_EXTRA) > BATCH_BYTES_MAX:
        given.refuse(f"--batch {given.batch} with --bytes {given.bytes}: a batch has at most {BATCH_BYTES_MAX} bytes")
    if given.kafka is not None and given.directory is not None:
        given.refuse("--directory is for a broker of its own, not for one that --kafka names")
    try:
        from goqueue.cli.bench.command import run_bench
    except ModuleNotFoundError as error:
        if error.name != "confluent_kafka":
            raise
        install = f"{sys.executable} -m pip install 'goqueue[bench]'"
        return complain(f"goqueue: bench needs confluent-kafka as the load; install it with: {install}", EXIT_USAGE)
    return run_bench(given)
