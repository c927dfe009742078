"""Topic options of Kafka that change nothing here. They are checked, kept and shown all the same: tools that copy
topics, such as MirrorMaker 2 or Terraform, set them and compare what they read back.
"""

import re
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import NamedTuple

from goqueue.model.errors import InvalidOption

INT_MAX, LONG_MAX = (1 << 31) - 1, (1 << 63) - 1


class OptionType(IntEnum):
    """As DescribeConfigs numbers them."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


class KeptOption(NamedTuple):
    type: OptionType
    default: str
    check: Callable[[str, str], str]
    """Called with name and text; gives the text as it is kept."""


def _number(type_: OptionType, default: int, lowest: int, highest: int | None = None) -> KeptOption:
    most = highest if highest is not None else INT_MAX if type_ is OptionType.INT else LONG_MAX

    def check(name: str, text: str) -> str:
        stripped = text.strip()
        if not re.fullmatch(r"[+-]?[0-9]{1,19}", stripped):
            raise InvalidOption(f"{name} is {text!r}, but must be a whole number")
        if not lowest <= int(stripped) <= most:
            raise InvalidOption(f"{name} is {text}, but must be from {lowest} to {most}")
        return stripped

    return KeptOption(type_, str(default), check)


def _integer(default: int, lowest: int, highest: int | None = None) -> KeptOption:
    return _number(OptionType.INT, default, lowest, highest)


def _long(default: int, lowest: int) -> KeptOption:
    return _number(OptionType.LONG, default, lowest)


def _check_switch(name: str, text: str) -> str:
    value = text.strip().lower()
    if value not in ("true", "false"):
        raise InvalidOption(f"{name} is {text!r}, but must be true or false")
    return value


def _check_gzip_level(name: str, text: str) -> str:
    level = _integer(-1, -1, 9).check(name, text)
    if int(level) == 0:
        raise InvalidOption(f"{name} is 0, but must be -1 or from 1 to 9")
    return level


def _check_throttled(name: str, text: str) -> str:
    value = text.replace(" ", "")
    if value not in ("", "*") and not re.fullmatch(r"[0-9]+:[0-9]+(,[0-9]+:[0-9]+)*", value):
        raise InvalidOption(f"{name} is {text[:40]!r}, but must be * or pairs such as 0:1,1:1 (partition:broker)")
    return value


_SWITCH = KeptOption(OptionType.BOOLEAN, "false", _check_switch)
_THROTTLED = KeptOption(OptionType.LIST, "", _check_throttled)

UNCLEAN_ELECTIONS = "unclean.leader.election.enable"

KEPT_OPTIONS: Mapping[str, KeptOption] = {
    "compression.gzip.level": KeptOption(OptionType.INT, "-1", _check_gzip_level),
    "compression.lz4.level": _integer(9, 1, 17),
    "compression.zstd.level": _integer(3, -131072, 22),
    "file.delete.delay.ms": _long(60_000, 0),
    "flush.messages": _long(LONG_MAX, 1),
    "flush.ms": _long(LONG_MAX, 0),
    "follower.replication.throttled.replicas": _THROTTLED,
    "index.interval.bytes": _integer(4096, 0),
    "leader.replication.throttled.replicas": _THROTTLED,
    "local.retention.bytes": _long(-2, -2),
    "local.retention.ms": _long(-2, -2),
    "preallocate": _SWITCH,
    "remote.log.copy.disable": _SWITCH,
    "remote.log.delete.on.disable": _SWITCH,
    "remote.storage.enable": _SWITCH,
    "segment.index.bytes": _integer(10 * 1024 * 1024, 4),
    "segment.jitter.ms": _long(0, 0),
    UNCLEAN_ELECTIONS: _SWITCH,
}


def allows_unclean(overrides: Mapping[str, str]) -> bool:
    """A topic prefers a leader that lacks records to none."""
    return overrides.get(UNCLEAN_ELECTIONS) == "true"
