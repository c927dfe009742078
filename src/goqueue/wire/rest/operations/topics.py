"""Operations on topics."""

from goqueue.wire.home import EVERYWHERE, HERE, PARTITION, Home, Way, at
from goqueue.wire.rest import topics
from goqueue.wire.rest.operation import Resource

TOPICS = Resource("Topics")

CREATE_TOPIC = TOPICS.add(
    "create_topic",
    "POST /topics",
    topics.TopicCreated,
    "Make a topic.",
    body=topics.NewTopic,
    status=201,
    errors=(409,),
    home=HERE,
)

LIST_TOPICS = TOPICS.add(
    "list_topics",
    "GET /topics",
    topics.TopicNames,
    "The names of all topics, sorted; those of dead letters too.",
    home=HERE,
)

DESCRIBE_TOPIC = TOPICS.add(
    "describe_topic",
    "GET /topics/{topic}",
    topics.TopicDetails,
    "What a topic is and holds.",
    path=topics.TopicPath,
    errors=(404,),
    home=EVERYWHERE,
)

CONFIGURE_TOPIC = TOPICS.add(
    "configure_topic",
    "PATCH /topics/{topic}",
    topics.TopicDetails,
    "Set options of a topic, or take them back.",
    path=topics.TopicPath,
    body=topics.TopicChange,
    errors=(404,),
    home=Home(Way.EVERYWHERE, others="GET"),
)

TRIM_TOPIC = TOPICS.add(
    "trim_topic",
    "POST /topics/{topic}/trim",
    topics.Trimmed,
    """Throw away the oldest messages of a topic, for good.

    Groups go on with the oldest message that is left. Messages that wait for their time stay.
    """,
    path=topics.TopicPath,
    body=topics.Trim,
    errors=(404,),
    home=at(PARTITION, "path.topic", "body.partition", otherwise=Way.EVERYWHERE),
)

DELETE_TOPIC = TOPICS.add(
    "delete_topic",
    "DELETE /topics/{topic}",
    topics.TopicDeleted,
    "Delete a topic and all that is in it, for good.",
    path=topics.TopicPath,
    errors=(404,),
    home=HERE,
)

LIST_PARTITIONS = TOPICS.add(
    "list_partitions",
    "GET /topics/{topic}/partitions",
    topics.Partitions,
    "Where the partitions of a topic are.",
    path=topics.TopicPath,
    errors=(404,),
    home=HERE,
)
