"""What a report is made of, as DataFrames: throughput, latency by stage, retries, dead letters, lag over time.

`messages` are rows of topics with `topic`, `partition`, `offset`, `timestamp`, `priority` and `bytes`; `steps` are what
happened to messages, one row each, from the table `steps`, where they are runs of messages.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

PLACE = ("topic", "partition", "offset")
RECEIVED, PERSISTED, DUE, FETCHED = "publish.received", "publish.persisted", "delay.due", "consume.fetched"
LEASED, ACKED, NACKED, LEASE_ENDED = "consume.leased", "consume.acked", "consume.nacked", "consume.lease_ended"
REJECTED, EXPIRED, DEAD = "consume.rejected", "consume.expired", "dead_letter.written"
USED = (RECEIVED, PERSISTED, DUE, FETCHED, LEASED, ACKED, NACKED, LEASE_ENDED, REJECTED, EXPIRED, DEAD)
SETTLED = (ACKED, REJECTED, EXPIRED, DEAD)
QUANTILES = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99}
ACCURACY = 10_000
RUN_MAX = 100_000
"""Longer runs of messages are taken apart, so that none becomes an array too large."""

STAGES = {
    "end to end": ("received", "acked"),
    "persist": ("received", "persisted"),
    "wait": ("ready", "first_leased"),
    "work": ("last_leased", "acked"),
    "read": ("received", "fetched"),
}
"""From what to what: received until acked, and the parts of that; `read` is for those who read it as a stream."""


def throughput(messages: DataFrame, window_ms: int) -> DataFrame:
    grouped = messages.groupBy("topic", f.col("priority").alias("lane"), _window("timestamp", window_ms))
    counted = grouped.agg(f.count(f.lit(1)).alias("messages"), f.sum("bytes").alias("bytes"))
    a_second = (f.col("messages") * 1000 / f.lit(window_ms)).alias("messages_per_second")
    return counted.select("*", a_second).orderBy("topic", "lane", "window")


def steps(stored: DataFrame, messages: DataFrame) -> DataFrame:
    """Everything that happened to each message, with its lane. A group is null where none had to do with it.

    A delayed message is known by the place that was kept for it; what happened after it was due is told of another.
    """
    each = _one_by_one(stored.where(f.col("event").isin(*USED)))
    moved = each.where("moved_to IS NOT NULL").select(
        "topic",
        "partition",
        f.col("offset").alias("kept"),
        (f.expr("offset - first_offset + moved_to")).alias("offset"),
    )
    lanes = _by_first_place(messages.select(*PLACE, f.col("priority").alias("lane")), moved)
    told = _by_first_place(each.select(*PLACE, "event", "timestamp", "group", "consumer"), moved)
    return told.join(lanes, list(PLACE), "left").fillna("normal", ["lane"])


def _one_by_one(stored: DataFrame) -> DataFrame:
    """Of a sample, where only every so-many-th message counts, those."""
    parts = stored.withColumn("part", f.explode(f.expr(f"sequence(first_offset, last_offset, {RUN_MAX}L)")))
    first = "part + pmod(-part, every)"
    last = f"least(last_offset, part + {RUN_MAX - 1})"
    return parts.where(f"{first} <= {last}").withColumn(
        "offset", f.explode(f.expr(f"sequence({first}, {last}, every)"))
    )


def _by_first_place(rows: DataFrame, moved: DataFrame) -> DataFrame:
    found = rows.join(moved, list(PLACE), "left")
    return found.withColumn("offset", f.coalesce("kept", "offset")).drop("kept")


def began_between(steps: DataFrame, start_ms: int | None, stop_ms: int | None) -> DataFrame:
    """Those of messages to which the first thing happened then."""
    if start_ms is None and stop_ms is None:
        return steps
    began = f.unix_millis(f.min("timestamp").over(Window.partitionBy(*PLACE)))
    found = steps.withColumn("began", began)
    for bound, sign in ((start_ms, ">="), (stop_ms, "<")):
        if bound is not None:
            found = found.where(f"began {sign} {bound}")
    return found.drop("began")


def deliveries(steps: DataFrame) -> DataFrame:
    """When each message reached each stage, for every group that had it."""
    own = steps.groupBy(*PLACE, "lane").agg(
        _first(RECEIVED).alias("received"), _first(PERSISTED).alias("persisted"), _first(DUE).alias("due")
    )
    of_group = (
        steps.where(f.col("group").isNotNull() | (f.col("event") == FETCHED))
        .withColumn("group", f.coalesce("group", f.concat(f.lit("reader "), "consumer"), f.lit("readers")))
        .groupBy(*PLACE, "group")
        .agg(
            _first(FETCHED).alias("fetched"),
            _first(LEASED).alias("first_leased"),
            f.max(_at(LEASED)).alias("last_leased"),
            _first(ACKED).alias("acked"),
        )
    )
    joined = own.join(of_group, list(PLACE), "left")
    return joined.withColumn("ready", f.coalesce("due", "persisted", "received"))


def latencies(deliveries: DataFrame) -> DataFrame:
    """Percentiles of every stage, by topic, group and lane."""
    pairs = [
        f.struct(f.lit(name).alias("stage"), _milliseconds(begin, end).alias("ms"))
        for name, (begin, end) in STAGES.items()
    ]
    each = deliveries.select("topic", "group", "lane", f.explode(f.array(*pairs)).alias("pair"))
    timed = each.select("topic", "group", "lane", "pair.stage", "pair.ms").where("ms IS NOT NULL AND ms >= 0")
    quantiles = [f.percentile_approx("ms", at, ACCURACY).alias(name) for name, at in QUANTILES.items()]
    found = timed.groupBy("topic", "group", "lane", "stage").agg(
        f.count(f.lit(1)).alias("messages"), *quantiles, f.max("ms").alias("max_ms")
    )
    return found.orderBy("topic", "group", "lane", "stage")


def retries(steps: DataFrame) -> DataFrame:
    """How often messages were delivered, and how often that was in vain."""
    counts = {
        "deliveries": LEASED,
        "acked": ACKED,
        "nacked": NACKED,
        "lease_ended": LEASE_ENDED,
        "rejected": REJECTED,
        "expired": EXPIRED,
    }
    found = steps.where(f.col("group").isNotNull()).groupBy("topic", "group", "lane")
    return found.agg(
        *(f.count(f.when(f.col("event") == event, 1)).alias(name) for name, event in counts.items())
    ).orderBy("topic", "group", "lane")


def dead_letters(letters: DataFrame) -> DataFrame:
    by = letters.groupBy("topic", "group", f.col("priority").alias("lane"), "reason")
    return by.agg(
        f.count(f.lit(1)).alias("messages"),
        f.round(f.avg("attempts"), 1).alias("attempts"),
        f.min("died_at").alias("first"),
        f.max("died_at").alias("last"),
    ).orderBy("topic", "group", "lane", "reason")


def lag_over_time(steps: DataFrame, window_ms: int) -> DataFrame:
    """Of the messages that are remembered: how many had come, and were not settled, at the end of each window."""
    groups = steps.where(f.col("group").isNotNull()).select("topic", "group").distinct()
    come = steps.where(f.col("event") == RECEIVED).groupBy(*PLACE).agg(f.min("timestamp").alias("at"))
    left = steps.where(f.col("event").isin(*SETTLED)).groupBy(*PLACE, "group").agg(f.min("timestamp").alias("at"))
    known = left.join(come.select(*PLACE), list(PLACE), "left_semi")
    both = (
        come.join(groups, "topic")
        .select("topic", "group", "at", f.lit(1).alias("change"))
        .unionByName(known.select("topic", "group", "at", f.lit(-1).alias("change")))
    )
    changes = both.groupBy("topic", "group", _window("at", window_ms)).agg(f.sum("change").alias("change"))
    so_far = Window.partitionBy("topic", "group").orderBy("window").rowsBetween(Window.unboundedPreceding, 0)
    running = changes.select("topic", "group", "window", f.sum("change").over(so_far).alias("lag"))
    return running.orderBy("topic", "group", "window")


def lag_now(lag: DataFrame) -> DataFrame:
    found = lag.groupBy("group", "type", "topic").agg(
        f.sum("lag").alias("lag"), f.max("oldest_age_ms").alias("oldest_age_ms")
    )
    return found.orderBy("group", "topic")


def _window(name: str, window_ms: int) -> Column:
    return f.window(name, f"{window_ms} milliseconds")["start"].alias("window")


def _at(event: str) -> Column:
    return f.when(f.col("event") == event, f.col("timestamp"))


def _first(event: str) -> Column:
    return f.min(_at(event))


def _milliseconds(begin: str, end: str) -> Column:
    return f.unix_millis(f.col(end)) - f.unix_millis(f.col(begin))
