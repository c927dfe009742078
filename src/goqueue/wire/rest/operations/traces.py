"""Operations on traces."""

from goqueue.wire.home import EVERYWHERE, PARTITION, Way, at
from goqueue.wire.rest import traces
from goqueue.wire.rest.operation import Resource

TRACES = Resource("Traces")

STORED_STEPS = TRACES.add(
    "stored_steps",
    "GET /traces/steps",
    traces.StoredSteps,
    """All that happened to messages and is stored, oldest first, as runs of messages to which the same happened.

    It is more than what is remembered, which searches look at, and meant for programs that read all of it. Pages have
    no fixed size, and may be empty: go on until `next` is null. In a cluster every node stores its own, and a page has
    what all of them have between two cursors, oldest first.
    """,
    query=traces.StepsQuery,
    home=EVERYWHERE,
)

LIST_TRACES = TRACES.add(
    "list_traces",
    "GET /traces",
    traces.TraceList,
    "The journeys of the latest messages that anything happened to, or of those that the filters choose.",
    query=traces.TracesQuery,
    errors=(404,),
    home=EVERYWHERE,
)

SEARCH_TRACES = TRACES.add(
    "search_traces",
    "GET /traces/search",
    traces.TraceSearchResult,
    """Journeys by trace, topic, partition, offset, group, time, status or key.

    `start` and `end` choose messages to which something happened then. With `key` the latest messages of that key are
    meant, and `topic` is needed. They are the latest; with `cursor` all journeys of one partition can be listed, by
    offset, which needs `topic` and `partition`. A page may have fewer than `limit`: it was the last if `next` is null.
    """,
    query=traces.TraceSearchQuery,
    errors=(404,),
    home=at(PARTITION, "query.topic", "query.partition", otherwise=Way.EVERYWHERE),
)

TRACE_STATS = TRACES.add(
    "trace_stats",
    "GET /traces/stats",
    traces.TraceStats,
    "How much is remembered, stored and exported.",
    home=EVERYWHERE,
)

DESCRIBE_TRACE = TRACES.add(
    "describe_trace",
    "GET /traces/{id}",
    traces.TraceDetails,
    "All that happened in a trace: one that a producer brought in `traceparent`, or one made for a message.",
    path=traces.TracePath,
    errors=(404,),
    home=EVERYWHERE,
)

WHERE_IS = TRACES.add(
    "where_is",
    "GET /topics/{topic}/partitions/{partition}/messages/{offset}/why",
    traces.Where,
    "Where a message is, and why it is not delivered yet, in words and for every group that reads its topic.",
    path=traces.WherePath,
    errors=(404,),
    home=at(PARTITION, "path.topic", "path.partition"),
)

WHERE_IS_KEY = TRACES.add(
    "where_is_key",
    "GET /topics/{topic}/why",
    traces.Where,
    "The same for the latest message of a key, looked for from the end of every partition backwards.",
    path=traces.WhereKeyPath,
    query=traces.WhereKeyQuery,
    errors=(404,),
    home=EVERYWHERE,
)
