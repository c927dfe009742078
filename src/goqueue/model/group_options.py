"""Options of one queue group. They go before those of its topics and have the same names, but for where it starts."""

from collections.abc import Mapping

from goqueue.model.errors import InvalidOption
from goqueue.model.starts import BY_DURATION, is_start
from goqueue.model.topics import parse_option

START = "start"
ISOLATION = "isolation"
READ_COMMITTED, READ_UNCOMMITTED = "read_committed", "read_uncommitted"
DELIVERY = "delivery"
ON, PAUSED = "on", "paused"
SHARED_WITH_TOPICS = (
    DELIVERY,
    "lease.ms",
    "attempts.max",
    "unacked.max",
    "retry.backoff.ms",
    "retry.backoff.max.ms",
    "lane.weights",
    "lane.boost.ms",
    "expired.messages",
)
SESSION_MS, HEARTBEAT_MS = "session.ms", "heartbeat.ms"
CONSUMER_SESSION_MS, CONSUMER_HEARTBEAT_MS = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
MEMBER_TIMES_MS: Mapping[str, tuple[int, int]] = {
    SESSION_MS: (1_000, 30 * 60_000),
    HEARTBEAT_MS: (100, 60_000),
    CONSUMER_SESSION_MS: (1_000, 30 * 60_000),
    CONSUMER_HEARTBEAT_MS: (100, 60_000),
}
"""Of members that send heartbeats: least and most. Those of consumer groups are for Kafka's own members (KIP-848)."""
ALL_OPTIONS = (START, ISOLATION, *MEMBER_TIMES_MS, *SHARED_WITH_TOPICS)
FORK_OF = "fork.of"
"""Kept beside the options of a fork: the group that it was forked from. It is no option, and nobody sets it."""


def without_origin(kept: Mapping[str, str]) -> dict[str, str]:
    """The options among what is kept of a group."""
    return {name: text for name, text in kept.items() if name != FORK_OF}


def check_group_options(changes: Mapping[str, str | None]) -> None:
    for name, text in changes.items():
        check_group_option(name, text)


def check_group_option(name: str, text: str | None) -> None:
    """InvalidOption says what is wrong. None: the option is to be taken back."""
    if name == START:
        if text is not None and not is_start(text):
            raise InvalidOption(f"start is {text!r}, but must be earliest, latest or such as {BY_DURATION}PT1H30M")
    elif name == ISOLATION:
        if text not in (None, READ_COMMITTED, READ_UNCOMMITTED):
            raise InvalidOption(f"isolation is {text!r}, but must be {READ_COMMITTED} or {READ_UNCOMMITTED}")
    elif name in MEMBER_TIMES_MS:
        least, most = MEMBER_TIMES_MS[name]
        if text is not None and not _is_within(text, least, most):
            raise InvalidOption(f"{name} is {text!r}, but must be from {least} to {most}")
    elif name not in SHARED_WITH_TOPICS:
        raise InvalidOption(f"unknown option of a group {name!r}; there are {', '.join(ALL_OPTIONS)}")
    elif text is not None:
        parse_option(name, text)


def is_of_consumers(name: str) -> bool:
    """Whether an option says nothing about a queue group."""
    return name in (CONSUMER_SESSION_MS, CONSUMER_HEARTBEAT_MS)


def _is_within(text: str, least: int, most: int) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= len(str(most)) and least <= int(text) <= most
