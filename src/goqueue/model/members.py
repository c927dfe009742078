"""Members that speak when they want something: what they say, and what they are told."""

from typing import NamedTuple

from goqueue.model.errors import GoQueueError
from goqueue.model.topic_partition import TopicPartition

SESSION_MS_MIN, SESSION_MS_MAX = 1000, 30 * 60_000
REBALANCE_MS = 60_000
"""Within that time a member that was asked to give up partitions must have done so."""
ANY_GENERATION = 0


class NotAssigned(GoQueueError):
    """The partition is another member's, or nobody's."""


class Who(NamedTuple):
    """Speaks for which member, as of which generation."""

    group_id: str
    member_id: str
    generation: int = ANY_GENERATION


class Joining(NamedTuple):
    group_id: str
    client_id: str
    topics: tuple[str, ...]
    member_id: str | None = None
    """Of a member that comes back."""
    session_ms: int = 0
    """0: as the group does."""
    is_cooperative: bool = False
    """It says itself when it has given up partitions, whatever it does meanwhile."""
    rebalance_ms: int = REBALANCE_MS
    client_host: str = ""


class Membership(NamedTuple):
    """How it stands with one member."""

    member_id: str
    generation: int
    assigned: tuple[TopicPartition, ...]
    revoking: tuple[TopicPartition, ...]
    """What it shall give up."""
    is_stable: bool
    """All members have what they shall have, and this one knows of it."""
    session_ms: int
    revocation_due_ms: int | None
