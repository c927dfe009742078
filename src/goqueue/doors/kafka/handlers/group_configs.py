"""Options of groups, by the names that Kafka has for them and by our own."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from goqueue.broker.group_options import (
    HEARTBEAT_MS,
    MEMBER_TIMES_MS,
    SESSION_MS,
    SHARED_WITH_TOPICS,
    START,
    check_group_option,
)
from goqueue.broker.groups import share_commands
from goqueue.broker.queues import LATEST
from goqueue.broker.topics import Result, code_of
from goqueue.doors.kafka.config_entries import Chosen, Option, Source
from goqueue.doors.kafka.request import Request
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError, InvalidOption
from goqueue.model.kept_options import OptionType
from goqueue.model.topics import OPTION_NAMES

KAFKA_NAMES = {
    "share.auto.offset.reset": START,
    "share.heartbeat.interval.ms": HEARTBEAT_MS,
    "share.session.timeout.ms": SESSION_MS,
    "share.record.lock.duration.ms": "lease.ms",
    "share.delivery.count.limit": "attempts.max",
}
ISOLATION = "share.isolation.level"
READ_COMMITTED = "read_committed"
"""The only level there is: what was aborted is nobody's job to do."""
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
        found.append(Option(name, kind, [*chosen, Chosen(name, default, Source.DEFAULT)]))
    found.append(
        Option(ISOLATION, OptionType.STRING, [Chosen(ISOLATION, READ_COMMITTED, Source.DEFAULT)], is_read_only=True)
    )
    return found


def _default(request: Request, name: str) -> str:
    if name == START:
        return LATEST
    if name in MEMBER_TIMES_MS:
        members = share_commands.ShareGroupOptions()
        return str(members.session_ms if name == SESSION_MS else members.heartbeat_ms)
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
    elif change.validate_only:
        on_result(Result(Code.NONE, ""))
    else:
        queues.set_options(change.group_id, changes, lambda reply: on_result(_result(reply)))


def _own_changes(change: GroupChange) -> dict[str, str | None]:
    changes: dict[str, str | None] = {}
    for name, text in change.changes.items():
        if name != ISOLATION:
            changes[KAFKA_NAMES.get(name, name)] = text
        elif text not in (None, READ_COMMITTED):
            raise InvalidOption(f"{ISOLATION} is {text!r}, but only {READ_COMMITTED} is possible")
    return changes


def _result(reply: Any) -> Result:
    return Result(code_of(reply), str(reply)) if isinstance(reply, GoQueueError) else Result(Code.NONE, "")
