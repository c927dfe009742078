"""Following a topic: events without end."""

from typing import Annotated

from msgspec import Meta, field

from goqueue.wire.rest.common import Moment, Offset, PartitionNumber
from goqueue.wire.rest.dead_letters import FilterQuery

PARTITIONS_MAX = 256
EventId = Annotated[
    str,
    Meta(
        pattern=r"^[0-9]{1,9}:[0-9]{1,18}(,[0-9]{1,9}:[0-9]{1,18}){0,255}\Z",
        description="The id of the last event that was seen; clients send it as the header Last-Event-ID",
        examples=["0:17,1:4"],
    ),
]


class FollowQuery(FilterQuery):
    partition: PartitionNumber | None = None
    """Absent: all of them."""
    start: Annotated[str, Meta(pattern=r"^(earliest|latest)\Z", examples=["latest"])] | None = field(
        default=None, name="from"
    )
    """Absent, with no offset and no time: latest, that is what comes from now on."""
    offset: Offset | None = None
    from_time: Moment | None = None
    last_event_id: EventId | None = None
    """Goes before all of these."""
