"""Options of groups, by the names that Kafka has for them and by our own."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from goqueue.doors.kafka.config_entries import Chosen, Option, Source
from goqueue.doors.kafka.request import Request
from goqueue.machines.controller_commands import Result
from goqueue.machines.groups.consumer.facts import CONSUMER_GROUPS
from goqueue.machines.groups.share import facts as share_commands
from goqueue.model.codes import Code
from goqueue.model.error_codes import code_of
from goqueue.model.errors import GoQueueError, InvalidOption
from goqueue.model.group_options import (
    ALL_OPTIONS,
    CONSUMER_HEARTBEAT_MS,
    CONSUMER_SESSION_MS,
    HEARTBEAT_MS,
    ISOLATION,
    MEMBER_TIMES_MS,
    READ_COMMITTED,
    SESSION_MS,
    SHARED_WITH_TOPICS,
    START,
    check_group_option,
)
from goqueue.model.ids import GROUP_ID_CHARS_MAX
from goqueue.model.kept_options import OptionType
from goqueue.model.option_words import OPTION_WORDS
from goqueue.model.starts import LATEST
from goqueue.model.topics import OPTION_NAMES

KAFKA_NAMES = {
    CONSUMER_SESSION_MS: CONSUMER_SESSION_MS,
    CONSUMER_HEARTBEAT_MS: CONSUMER_HEARTBEAT_MS,
    "share.auto.offset.reset": START,
    "share.heartbeat.interval.ms": HEARTBEAT_MS,
    "share.session.timeout.ms": SESSION_MS,
    "share.record.lock.duration.ms": "lease.ms",
    "share.delivery.count.limit": "attempts.max",
    "share.isolation.level": ISOLATION,
}
WORDS = {
    START: "Where the group begins in a new partition: earliest, latest, or by_duration: and how long ago.",
    ISOLATION: "Whether the group sees records of open and aborted transactions (read_uncommitted) or not.",
    SESSION_MS: "How long a member of a share group may be silent.",
    HEARTBEAT_MS: "Pause between the heartbeats of a member of a share group.",
    CONSUMER_SESSION_MS: "How long a member of a consumer group (KIP-848) may be silent.",
    CONSUMER_HEARTBEAT_MS: "Pause between the heartbeats of a member of a consumer group (KIP-848).",
}
OWN_NAMES = tuple(name for name in SHARED_WITH_TOPICS if name not in KAFKA_NAMES.values())


class GroupChange(NamedTuple):
    group_id: str
    changes: Mapping[str, str | None]
    """None: no longer set."""
    replaces_all: bool
    """What is not mentioned is no longer set either."""
    validate_only: bool


def group_options(request: Request, group_id: str) -> list[Option]:
    options = request.broker.queues.options(group_id)
    found = []
    for name in (*KAFKA_NAMES, *OWN_NAMES):
        own = KAFKA_NAMES.get(name, name)
        default = _default(request, own)
        chosen = [Chosen(name, options[own], Source.GROUP)] if own in options else []
        kind = OptionType.INT if default.isdigit() else OptionType.STRING
        words = WORDS.get(own) or OPTION_WORDS[own]
        found.append(Option(name, kind, [*chosen, Chosen(name, default, Source.DEFAULT)], words))
    return found


def _default(request: Request, name: str) -> str:
    if name == START:
        return LATEST
    if name == ISOLATION:
        return READ_COMMITTED
    if name in MEMBER_TIMES_MS:
        share = share_commands.ShareGroupOptions()
        return {
            SESSION_MS: str(share.session_ms),
            HEARTBEAT_MS: str(share.heartbeat_ms),
            CONSUMER_SESSION_MS: str(CONSUMER_GROUPS.session_ms),
            CONSUMER_HEARTBEAT_MS: str(CONSUMER_GROUPS.heartbeat_ms),
        }[name]
    return str(getattr(request.broker.topics.defaults, OPTION_NAMES[name]))


def change_group(request: Request, change: GroupChange, on_result: Callable[[Result], None]) -> None:
    queues = request.broker.queues
    try:
        changes = _own_changes(change)
        for name, text in changes.items():
            check_group_option(name, text)
    except InvalidOption as error:
        on_result(Result(Code.INVALID_CONFIG, str(error)))
        return
    if change.replaces_all:
        changes = dict.fromkeys(queues.options(change.group_id)) | changes
    if not change.group_id:
        on_result(Result(Code.INVALID_REQUEST, "the options of all groups cannot be changed at once"))
    elif len(change.group_id) > GROUP_ID_CHARS_MAX:
        on_result(Result(Code.INVALID_GROUP_ID, f"the id of a group has at most {GROUP_ID_CHARS_MAX} characters"))
    elif change.validate_only:
        on_result(Result(Code.NONE, ""))
    else:
        queues.set_options(change.group_id, changes, lambda reply: on_result(_result(reply)))


def _own_changes(change: GroupChange) -> dict[str, str | None]:
    changes: dict[str, str | None] = {}
    for name, text in change.changes.items():
        own = KAFKA_NAMES.get(name, name)
        if text is not None or own in ALL_OPTIONS:  # to take back what does not exist is no error
            changes[own] = text
    return changes


def _result(reply: Code | GoQueueError) -> Result:
    return Result(code_of(reply), str(reply)) if isinstance(reply, GoQueueError) else Result(Code.NONE, "")
