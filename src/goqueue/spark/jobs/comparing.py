"""What was produced against what arrived, as DataFrames: lost, duplicated, reordered, unexpected.

A message is known by its place (topic, partition, offset), or by an expression that both sides can answer. Both sides
come here as rows of `id`, `topic`, `partition`, `offset`, `timestamp`; what arrived also has `at`, its place in the
order of arrival, or null where no order is known.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

PLACE = "concat_ws('/', topic, partition, offset)"
LOST, DUPLICATED, REORDERED, UNEXPECTED, GONE = "lost", "duplicated", "reordered", "unexpected", "gone"
FAULTS = (LOST, DUPLICATED, REORDERED, UNEXPECTED)


def identified(rows: DataFrame, by: str | None, order: str | None = None) -> DataFrame:
    """The columns that are compared, of any rows that have enough of them."""
    names = set(rows.columns)
    has_place = {"topic", "partition", "offset"} <= names

    def known(name: str, kind: str) -> Column:
        return (f.col(name) if name in names else f.lit(None)).cast(kind)

    return rows.select(
        f.expr(by or PLACE).cast("string").alias("id"),
        known("topic", "string").alias("topic"),
        known("partition", "int").alias("partition"),
        known("offset", "bigint").alias("offset"),
        known("timestamp", "timestamp").alias("timestamp"),
        (f.col(order) if order else known("offset", "bigint") if by and has_place else f.lit(None)).alias("at"),
    )


def compared(produced: DataFrame, arrived: DataFrame) -> DataFrame:
    """One row for every message of either side, with its `fault`, or null where all is well.

    `gone`: it arrived, and lies before all that its partition still has: retention took it, which is no fault.
    """
    one = Window.partitionBy("id")
    first_of = produced.groupBy("topic", "partition").agg(f.min("offset").alias("first_offset"))
    sent = produced.drop("at").withColumn("copies_sent", f.count(f.lit(1)).over(one)).dropDuplicates(["id"])
    in_order = _reordered(sent, arrived)
    seen = in_order.groupBy("id").agg(
        f.count(f.lit(1)).alias("copies"),
        f.max("is_late").alias("is_late"),
        *(f.min(name).alias(f"seen_{name}") for name in ("topic", "partition", "offset", "timestamp")),
    )
    both = sent.join(seen, "id", "full_outer")
    own = [
        f.coalesce(f.col(name), f.col(f"seen_{name}")).alias(name)
        for name in ("topic", "partition", "offset", "timestamp")
    ]
    found = both.select("id", "copies_sent", "copies", "is_late", *own).join(
        f.broadcast(first_of), ["topic", "partition"], "left"
    )
    fault = (
        f.when(f.col("copies").isNull(), LOST)
        .when(f.col("copies_sent").isNull() & (f.col("offset") < f.col("first_offset")), GONE)
        .when(f.col("copies_sent").isNull(), UNEXPECTED)
        .when(f.col("copies") > f.col("copies_sent"), DUPLICATED)
        .when(f.col("copies") < f.col("copies_sent"), LOST)
        .when(f.col("is_late"), REORDERED)
    )
    return found.withColumn("fault", fault).select(
        "id", "topic", "partition", "offset", "timestamp", "copies_sent", "copies", "fault"
    )


def _reordered(sent: DataFrame, arrived: DataFrame) -> DataFrame:
    """`is_late`: before it, one arrived that was produced after it, in the same partition. Of a message that came
    twice its first arrival counts: that it came again is another fault.
    """
    places = sent.select("id", f.col("topic").alias("was_topic"), f.col("partition").alias("was_partition"), "offset")
    placed = arrived.join(places.withColumnRenamed("offset", "was_offset"), "id", "left")
    again = Window.partitionBy("id").orderBy("at")
    stream = Window.partitionBy("topic", "partition", "was_topic", "was_partition").orderBy("at", "was_offset")
    before = stream.rowsBetween(Window.unboundedPreceding, -1)
    is_first = f.row_number().over(again) == 1
    highest = f.max(f.when(f.col("is_first"), f.col("was_offset"))).over(before)
    late = f.col("is_first") & f.col("at").isNotNull() & (highest > f.col("was_offset"))
    return placed.withColumn("is_first", is_first).withColumn("is_late", f.coalesce(late, f.lit(False)))


def by_window(found: DataFrame, window_ms: int) -> DataFrame:
    """How many of each, by topic and window of time."""
    begin = f.window("timestamp", f"{window_ms} milliseconds")["start"]
    counts = [f.count(f.when(f.col("fault") == fault, 1)).alias(fault) for fault in (*FAULTS, GONE)]
    return (
        found.groupBy("topic", begin.alias("window"))
        .agg(
            f.count("copies_sent").alias("produced"),
            f.count(f.when(f.col("copies_sent").isNotNull() & f.col("copies").isNotNull(), 1)).alias("arrived"),
            *counts,
        )
        .orderBy("topic", "window")
    )


def samples(found: DataFrame, most: int) -> DataFrame:
    """Some of each fault, the earliest first."""
    rank = f.row_number().over(Window.partitionBy("fault").orderBy("topic", "partition", "offset", "id"))
    faulty = found.where(f.col("fault").isin(*FAULTS)).withColumn("rank", rank).where(f.col("rank") <= most)
    chosen = faulty.select("fault", "id", "topic", "partition", "offset", "timestamp", "copies_sent", "copies")
    return chosen.orderBy("fault", "topic", "partition", "offset", "id")
