"""Why a job that went well has moved nothing: a user who expected a million messages wants to know."""

from argparse import Namespace
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from goqueue.spark.connect import Brokers
from goqueue.spark.options import Options, Part
from goqueue.spark.read.bounds import Extent, extent_of
from goqueue.spark.read.topics import Chosen
from goqueue.spark.where import kafka_at


def of_topics(at: Mapping[str, str], topics: Sequence[str]) -> list[str]:
    """Of an archive that found nothing to take: a sentence for each topic."""
    options = Options({**at, "subscribe": ",".join(topics)}, Part.BATCH)
    with Brokers(kafka_at(options)) as brokers:
        places = brokers.run(Chosen(options).find(brokers.cluster, may_be_missing=True))
        extent = brokers.run(extent_of(brokers.cluster, places, is_committed=True))
    return [_of_topic(topic, extent) for topic in topics]


def _of_topic(topic: str, extent: Extent) -> str:
    places = [place for place in extent.end if place[0] == topic]
    if not places:
        return f"topic {topic} is gone"
    had = sum(extent.end[place] for place in places)
    has = had - sum(extent.first[place] for place in places)
    if not had:
        return f"nothing was ever published to {topic}"
    if not has:
        return f"all {had:,} messages that {topic} had are gone: retention, which goes by their time, has removed them"
    return f"nothing of {topic} is new: what it has, up to {had:,} offsets, was taken before"


def of_restore(archived: DataFrame, given: Namespace) -> str:
    """Of an archive of which nothing was chosen."""
    count = archived.count()
    if not count:
        return "the archive has no messages"
    within = archived
    for bound, sign in ((given.start, ">="), (given.stop, "<")):
        within = within if bound is None else within.where(f"timestamp {sign} timestamp_millis({bound})")
    in_time = within.count()
    if not in_time:
        return f"none of {count:,} archived messages lies in that time"
    return f"--where chooses none of the {in_time:,} archived messages of that time"
