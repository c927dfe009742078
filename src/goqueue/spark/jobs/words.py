"""How a job is told what to do: one table, from which `goqueue pipeline` and spark-submit read the same flags.

It imports no Spark: every start of the command line reads it.
"""

import re
import time
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from goqueue.model.errors import GoQueueError

OUTPUTS = ("table", "json")
SECRET_OPTIONS = ("goqueue.api.key", "kafka.sasl.jaas.config", "kafka.ssl.key.password")
PORT_MAX = 65535
_RATE = re.compile(r"([1-9][0-9]{0,8})\s*(?:/\s*(s|m|h))?")
_SECONDS = {"s": 1, "m": 60, "h": 3600}


class Flag(NamedTuple):
    """One argument: with dashes a flag, without told by its place. The fields are those of the command line's."""

    names: tuple[str, ...]
    help: str
    metavar: str = ""
    """Empty: it takes no value, it is on or off."""
    kind: Callable[[str], Any] = str
    default: Any = None
    choices: tuple[str, ...] = ()
    is_repeated: bool = False
    is_required: bool = False
    is_optional: bool = False
    """Of one without dashes: it may be left out."""
    dest: str = ""

    @property
    def is_flag(self) -> bool:
        return self.names[0].startswith("-")


class Job(NamedTuple):
    name: str
    summary: str
    flags: tuple[Flag, ...]
    examples: tuple[str, ...]
    about: str = ""
    reads_brokers: bool = True
    """It needs the topics that it names, so that no Spark need be started where there are none."""
    needs_spark: bool = True
    extra: str = "spark"
    """Of goqueue, which has to be installed for it."""


def flag(*names: str, help: str, **more: Any) -> Flag:
    return Flag(names, help, **more)


def place(name: str, help: str, **more: Any) -> Flag:
    return Flag((name,), help, metavar=name.upper(), **more)


def setting(text: str) -> tuple[str, str]:
    name, mark, value = text.partition("=")
    if not mark or not name:
        raise ArgumentTypeError(f"{text!r}: expected NAME=VALUE")
    return name, value


def option(text: str) -> tuple[str, str]:
    name, value = setting(text)
    if name in SECRET_OPTIONS:
        raise ArgumentTypeError(f"{name}: everybody on this machine sees arguments; show a key from a file instead")
    return name, value


WHERE_IT_RUNS = (
    flag(
        "--kafka",
        metavar="HOST:PORT",
        help="the brokers, with commas between (default: port 9092 of the host of --server)",
    ),
    flag("--master", metavar="URL", help="the Spark to run on (default local[*]: this machine)"),
    flag(
        "--conf",
        metavar="NAME=VALUE",
        is_repeated=True,
        kind=setting,
        help="a setting of Spark, such as spark.driver.memory=4g",
    ),
    flag(
        "--option",
        metavar="NAME=VALUE",
        is_repeated=True,
        kind=option,
        help="an option of every read and write of topics, such as kafka.security.protocol=SASL_SSL",
    ),
)
WHO_IS_ASKED = (
    flag("--server", metavar="URL", help="HTTP address of a node (default: as the brokers tell)"),
    flag(
        "--api-key-file",
        metavar="FILE",
        help="file with the key that the server wants, in its first line "
        "(default: GOQUEUE_API_KEY, or the file that GOQUEUE_API_KEY_FILE names)",
    ),
    flag("--ca", metavar="FILE", help="certificates that the nodes' are signed with, as PEM: connect with TLS"),
    flag("-o", "--output", metavar="|".join(OUTPUTS), choices=OUTPUTS, default="table", help="shape of the answer"),
)
"""What a job that is submitted to Spark takes beside its own: under `goqueue pipeline` all commands have these."""


def moment(text: str) -> int:
    """Milliseconds since 1970."""
    from goqueue.model.moments import parse_moment_ms

    try:
        return parse_moment_ms(text, time.time_ns() // 1_000_000)
    except GoQueueError as error:
        raise ArgumentTypeError(str(error)) from None


def span(text: str) -> int:
    """Milliseconds."""
    if text.isdigit():
        raise ArgumentTypeError(f"{text!r}: say the unit too, such as {text}s")
    from goqueue.model.moments import parse_duration_ms

    try:
        return parse_duration_ms(text)
    except GoQueueError as error:
        raise ArgumentTypeError(str(error)) from None


def address(text: str) -> tuple[str, int]:
    host, mark, port = text.rpartition(":")
    if not mark or not host or not port.isascii() or not port.isdigit() or int(port) > PORT_MAX:
        raise ArgumentTypeError(f"{text!r}: expected HOST:PORT")
    return host.strip("[]"), int(port)


def count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r}: expected a whole number above 0")
    return int(text)


def rate(text: str) -> float:
    """Messages a second: 1000, 1000/s, 90/m."""
    found = _RATE.fullmatch(text.strip())
    if found is None:
        raise ArgumentTypeError(f"{text!r}: expected messages in a time, such as 1000/s or 90/m")
    return int(found[1]) / _SECONDS[found[2] or "s"]


def parser_of(job: Job) -> ArgumentParser:
    """For spark-submit, and for whoever calls a job's main()."""
    parser = ArgumentParser(prog=f"goqueue-{job.name}", description=job.about or job.summary, allow_abbrev=False)
    for each in (*job.flags, *WHERE_IT_RUNS, *WHO_IS_ASKED):
        _add(parser, each)
    return parser


def _add(parser: ArgumentParser, each: Flag) -> None:
    more: dict[str, Any] = {"help": each.help.replace("%", "%%")}
    if each.is_flag:
        more |= {"dest": each.dest or each.names[-1].lstrip("-").replace("-", "_"), "required": each.is_required}
    elif each.is_repeated:
        more["nargs"] = "*" if each.is_optional else "+"
    elif each.is_optional:
        more["nargs"] = "?"
    if each.is_flag and not each.metavar:
        more.pop("required")
        parser.add_argument(*each.names, action="store_true", **more)
        return
    if each.is_flag and each.is_repeated:
        more |= {"action": "append", "default": []}
    elif each.is_flag:
        more["default"] = each.default
    if each.choices:
        more["choices"] = each.choices
    parser.add_argument(*each.names, type=each.kind, metavar=each.metavar, **more)


def dashed(arguments: Sequence[str], job: Job) -> list[str]:
    """`--from -2h` as `--from=-2h`: argparse takes what begins with a dash for a flag, even there."""
    wanting = {name for each in job.flags if each.metavar and each.is_flag for name in each.names}
    found: list[str] = []
    for each in arguments:
        if found and found[-1] in wanting and re.match(r"-[0-9]", each):
            found[-1] = f"{found[-1]}={each}"
        else:
            found.append(each)
    return found
