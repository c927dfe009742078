"""Names become directories, so a name is checked before it reaches a disk."""

import re

from goqueue.model.errors import InvalidName

TOPIC_NAME_CHARS_MAX = 249
LEDGER_PREFIX = "@"
"""The names of the broker's own logs begin with it. No topic's can, so the two never share a directory or a label."""

_TENANT = re.compile(r"\A[a-z0-9][a-z0-9-]{0,31}~")
_TOPIC_NAME = re.compile(rf"[A-Za-z0-9._-]{{1,{TOPIC_NAME_CHARS_MAX}}}")


def check_topic_name(name: str) -> None:
    """Raise InvalidName unless `name` is a Kafka topic name; such a name is also safe as one path component."""
    if not _TOPIC_NAME.fullmatch(name) or name in {".", ".."}:
        shown = name if len(name) <= TOPIC_NAME_CHARS_MAX else name[:20] + "..."
        raise InvalidName(
            f"{shown!r} is no topic name: 1 to {TOPIC_NAME_CHARS_MAX} of the characters A-Z a-z 0-9 . _ - are needed, "
            "and neither '.' nor '..' alone"
        )


def check_kept_name(name: str) -> None:
    """Raise InvalidName unless a topic may be kept under `name`: that of another tenant than the default one has that
    tenant's id and a ~ in front."""
    check_topic_name(_TENANT.sub("", name, count=1) if len(name) <= TOPIC_NAME_CHARS_MAX else name)


def is_topic_name(name: str) -> bool:
    """Of a topic as it is kept."""
    try:
        check_kept_name(name)
    except InvalidName:
        return False
    return True


def check_log_name(name: str) -> None:
    """Raise InvalidName unless `name` is that of a topic or of a ledger: a directory may be called so."""
    check_kept_name(name.removeprefix(LEDGER_PREFIX))


def collision_key(topic: str) -> str:
    """Topics with the same key collide: metrics systems turn a dot into an underscore, as Kafka's own metrics do."""
    return topic.replace(".", "_")
