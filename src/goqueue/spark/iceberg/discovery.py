"""Which topics are tables: asked of a broker, in one request for many topics, again and again."""

from goqueue.client.cluster import Cluster
from goqueue.client.http import HttpRefused
from goqueue.client.sync import Admin
from goqueue.model.codes import Code
from goqueue.spark.connect import Brokers, administration
from goqueue.spark.errors import SparkError
from goqueue.spark.where import Where
from goqueue.wire.kafka.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from goqueue.wire.rest.topics import TopicDetails

TOPIC_RESOURCE = 2
TOPICS_AT_ONCE = 500
OPTION, ICEBERG = "table", "iceberg"
NOT_FOUND = 404


def topics_with_tables(kafka: Where, http: Where) -> list[TopicDetails]:
    """SparkError: nobody answers."""
    with administration(http) as admin:
        names = admin.topics()
        if not names:
            return []
        with Brokers(kafka) as brokers:
            chosen = brokers.run(_with_option(brokers.cluster, names))
        return [found for name in chosen if (found := _details(admin, name)) is not None]


async def _with_option(cluster: Cluster, names: list[str]) -> list[str]:
    found: list[str] = []
    for begin in range(0, len(names), TOPICS_AT_ONCE):
        some = names[begin : begin + TOPICS_AT_ONCE]
        request = DescribeConfigsRequest([DescribeConfigsResource(TOPIC_RESOURCE, name, [OPTION]) for name in some])
        answer = await cluster.ask_any(request, DescribeConfigsResponse)
        for result in answer.results:  # a topic whose options are not told is not one that is no table any more
            if result.error_code not in (Code.NONE, Code.UNKNOWN_TOPIC_OR_PARTITION):
                why = result.error_message or Code(result.error_code).name.lower().replace("_", " ")
                raise SparkError(f"the broker does not tell the options of topic {result.resource_name}: {why}")
        found += [
            result.resource_name
            for result in answer.results
            if any((config.name, config.value) == (OPTION, ICEBERG) for config in result.configs)
        ]
    return found


def _details(admin: Admin, name: str) -> TopicDetails | None:
    """None: it was deleted a moment ago."""
    try:
        return admin.topic(name)
    except HttpRefused as error:
        if error.status != NOT_FOUND:
            raise
        return None
