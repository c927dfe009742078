"""Operations on messages: published, read, followed."""

from goqueue.wire.home import IN_PARTS, PARTITION, at
from goqueue.wire.rest import follow, messages, topics
from goqueue.wire.rest.operation import EVENTS, LARGE_BODY_BYTES_MAX, Resource

MESSAGES = Resource("Messages")

PUBLISH = MESSAGES.add(
    "publish",
    "POST /topics/{topic}/messages",
    messages.PublishedAll,
    """Publish messages, each on its own.

    The answer comes when all of them are as durable as their topic asks for. A message that could not be published has
    an `error` in its result; the others are published all the same. A delay goes before `deliver_at`; a time that has
    passed means at once. A topic that is not there is made, if the setting `auto_create_topics` is on.
    """,
    path=topics.TopicPath,
    body=messages.Publish,
    errors=(404, 413),
    body_bytes_max=LARGE_BODY_BYTES_MAX,
    home=IN_PARTS,
)

READ_MESSAGES = MESSAGES.add(
    "read_messages",
    "GET /topics/{topic}/partitions/{partition}/messages",
    messages.Messages,
    "Committed messages of one partition, in the order of their offsets. Reading changes nothing.",
    path=messages.PartitionPath,
    query=messages.ReadQuery,
    errors=(404,),
    home=at(PARTITION, "path.topic", "path.partition"),
)

FOLLOW_TOPIC = MESSAGES.add(
    "follow_topic",
    "GET /topics/{topic}/follow",
    str,
    """Follow a topic: every committed message as a server-sent event, as it comes, without end.

    All partitions or one; from now on, or from an offset, a time or the beginning; all messages or what a filter
    takes. After a break a client that sends `Last-Event-ID`, as browsers do, goes on where it was. An event
    `skipped` tells that retention took messages before they could be sent, an event `end` that there is no more: the
    topic was deleted, or the node stops. Without messages a comment comes every 15 seconds. Following settles nothing.
    """,
    path=topics.TopicPath,
    query=follow.FollowQuery,
    errors=(404,),
    waits=True,
    header_fields=(("last-event-id", "last_event_id"),),
    media_type=EVENTS,
    home=IN_PARTS,
)
