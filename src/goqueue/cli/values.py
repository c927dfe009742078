"""Values as people type them: 168h, 10GiB, -2h, name=value. Light, because every start of the command reads it."""

import re
import time
from argparse import ArgumentTypeError
from collections.abc import Callable

from goqueue.model.errors import GoQueueError

FOREVER = ("-1", "forever", "unlimited")
UNLIMITED = -1
INT64_MAX = (1 << 63) - 1
_SPOT = re.compile(r"([A-Za-z0-9._-]{1,249})/([0-9]{1,9})/([0-9]{1,18})")


def number(at_least: int = 0, at_most: int = INT64_MAX) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = at_least - 1
        if not at_least <= value <= at_most:
            words = f"from {at_least} to {at_most}" if at_most < INT64_MAX else f"of at least {at_least}"
            raise ArgumentTypeError(f"{text!r}: expected a whole number {words}")
        return value

    return parse


def duration_ms(text: str) -> int:
    """A number without a unit is refused: of hours, seconds and milliseconds each seems natural to somebody."""
    if text.isdigit() and text.strip("0"):
        raise ArgumentTypeError(f"{text!r}: say the unit too, such as {text}h, {text}s or {text}ms")
    from goqueue.model.moments import parse_duration_ms

    try:
        return parse_duration_ms(text)
    except GoQueueError as error:
        raise ArgumentTypeError(str(error)) from None


def retention_ms(text: str) -> int:
    return UNLIMITED if text in FOREVER else duration_ms(text)


def size_bytes(text: str) -> int:
    from goqueue.node.values import byte_size

    kind = byte_size()
    try:
        return kind.parse(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r}: expected {kind.expected}") from None


def retention_bytes(text: str) -> int:
    return UNLIMITED if text in FOREVER else size_bytes(text)


def moment_ms(text: str) -> int:
    from goqueue.model.moments import parse_moment_ms

    try:
        return parse_moment_ms(text, time.time_ns() // 1_000_000)
    except GoQueueError as error:
        raise ArgumentTypeError(str(error)) from None


def moment(text: str) -> str:
    """As it was written: the node reads it, and takes a number that is no text for an offset."""
    moment_ms(text)
    return text


def place_in_log(text: str) -> str | int:
    """One end of a topic, an offset or a time. A small number is an offset, as no time is meant by it."""
    if text in ("earliest", "latest"):
        return text
    if text.isascii() and text.isdigit():
        return number()(text)
    moment_ms(text)
    return text


def new_topic(text: str) -> str:
    """Checked here, where we can say what a name is."""
    from goqueue.model.names import check_topic_name

    try:
        check_topic_name(text)
    except GoQueueError as error:
        raise ArgumentTypeError(str(error)) from None
    return text


def server_url(text: str) -> str:
    """Or several, with commas between them."""
    return ",".join(_server_url(each.strip()) for each in text.split(",") if each.strip()) or _server_url(text)


def _server_url(text: str) -> str:
    address = text if "://" in text else f"http://{text}"
    scheme, _, rest = address.partition("://")
    if scheme not in ("http", "https") or not rest or any(each.isspace() for each in rest):
        raise ArgumentTypeError(f"{text!r}: expected an HTTP address, such as http://127.0.0.1:8080")
    return address


def pair(text: str) -> tuple[str, str]:
    name, mark, value = text.partition("=")
    if not mark or not name:
        raise ArgumentTypeError(f"{text!r}: expected NAME=VALUE")
    return name, value


def spot(text: str) -> tuple[str, int, int]:
    """A message: topic, partition and offset."""
    found = _SPOT.fullmatch(text)
    if found is None:
        raise ArgumentTypeError(f"{text!r}: expected TOPIC/PARTITION/OFFSET, such as orders/0/17")
    return found[1], int(found[2]), int(found[3])


def offset_place(text: str) -> tuple[int, int]:
    partition, mark, offset = text.partition("/")
    if not mark or not partition.isdigit() or not offset.isdigit():
        raise ArgumentTypeError(f"{text!r}: expected PARTITION/OFFSET, such as 0/17")
    return int(partition), int(offset)


MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
"""Those of `goqueue.client.Security`, which takes its time to import."""
REFUSED = "refused: others on this machine see arguments. Use GOQUEUE_API_KEY or --api-key-file"
PASSWORD_REFUSED = "refused: others on this machine see arguments. Use GOQUEUE_PASSWORD or --password-file"  # noqa: S105  it is none


def refused_secret(_text: str) -> str:
    """What was said is not told again."""
    raise ArgumentTypeError(
        "a key is not taken as an argument, which others can see: use GOQUEUE_API_KEY or --api-key-file"
    )


def refused_password(_text: str) -> str:
    raise ArgumentTypeError(
        "a password is not taken as an argument, which others can see: use GOQUEUE_PASSWORD or --password-file"
    )
