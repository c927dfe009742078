"""Operations on lanes."""

from goqueue.wire.home import EVERYWHERE
from goqueue.wire.rest import lanes, topics
from goqueue.wire.rest.operation import Resource

PRIORITIES = Resource("Priorities")

TOPIC_LANES = PRIORITIES.add(
    "topic_lanes",
    "GET /topics/{topic}/lanes",
    lanes.TopicLanes,
    """What a queue group has ready and in flight in each lane of a topic, and how fast messages come and go.

    Rates are measured from one look to the next, over a second at least; the first look sees none.
    """,
    path=topics.TopicPath,
    query=lanes.LanesQuery,
    errors=(404,),
    home=EVERYWHERE,
)

PRIORITY_STATS = PRIORITIES.add(
    "priority_stats",
    "GET /priority/stats",
    lanes.PriorityStats,
    "How much of each priority there is, topic by topic, as queue groups see it.",
    home=EVERYWHERE,
)
