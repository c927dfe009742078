"""Health, version and the numbers of a node."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from goqueue.wire.rest.common import Count, Query, Reply


class Health(Reply):
    status: Annotated[str, Meta(examples=["ok"])]
    timestamp: str


class Check(Reply):
    status: Annotated[str, Meta(examples=["pass"])]
    message: str


class BrokerFacts(Reply):
    node_id: str
    cluster_id: str
    topic_count: int
    total_size: Count


class Probe(Reply):
    status: Annotated[str, Meta(description="pass, warn or fail", examples=["pass"])]
    timestamp: str
    uptime: Annotated[str, Meta(examples=["1h2m3s"])]
    message: str | UnsetType = UNSET
    checks: dict[str, Check] | UnsetType = UNSET
    broker: BrokerFacts | UnsetType = UNSET


class ProbeQuery(Query):
    verbose: bool = False


class MetricsQuery(Query):
    accept: Annotated[str, Meta(description="as the header Accept", max_length=1000)] = ""


class RootQuery(Query):
    accept: Annotated[str, Meta(description="As the header Accept", max_length=1000)] = ""


class Root(Reply):
    """Paths on this node."""

    name: Annotated[str, Meta(description="What answers here", examples=["GoQueue"])]
    version: Annotated[str, Meta(description="Its version")]
    docs: Annotated[str, Meta(description="The page for people", examples=["/docs"])]
    openapi: Annotated[str, Meta(description="The same as OpenAPI", examples=["/openapi.json"])]
    postman: Annotated[str, Meta(description="The same as a Postman collection", examples=["/postman.json"])]
    topics: Annotated[str, Meta(description="Where the topics are", examples=["/topics"])]
    health: Annotated[str, Meta(description="How the node is", examples=["/healthz"])]
    metrics: Annotated[str, Meta(description="Metrics for Prometheus", examples=["/metrics"])]


class Version(Reply):
    version: str
    python_version: str


class TopicStats(Reply):
    name: str
    partitions: int
    total_messages: Count
    published: Annotated[int, Meta(ge=0, description="Offsets that were given so far, over all partitions")]
    total_size: Count


class Stats(Reply):
    node_id: str
    uptime: str
    topics: int
    total_size_bytes: Count
    topic_stats: dict[str, TopicStats]
