"""Orders come in; each goes out to the topic `enriched` with what is known of its customer. Plain PySpark."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

CUSTOMER = "id STRING, name STRING, city STRING"
ORDER = "id INT, customer STRING, amount DOUBLE"
LARGE = 100


def enrich(spark: SparkSession, kafka: str, checkpoint: str) -> int:
    """Up to now; called again, it goes on from there. How many it has written."""
    at = {"kafka.bootstrap.servers": kafka}
    customers = spark.read.format("goqueue").options(**at).load("customers")  # all that is in the topic now
    known = customers.select(f.from_json(f.col("value").cast("string"), CUSTOMER).alias("it")).select("it.*").distinct()
    orders = spark.readStream.format("goqueue").options(**at, startingOffsets="earliest").load("orders")
    placed = orders.select("key", f.from_json(f.col("value").cast("string"), ORDER).alias("placed"))
    is_large = f.col("placed.amount") >= LARGE
    told = f.struct("placed.id", "placed.amount", is_large.alias("is_large"), "name", "city")
    rows = placed.join(
        known.withColumnRenamed("id", "customer"), placed["placed.customer"] == f.col("customer"), "left"
    )
    rows = rows.select("key", f.to_json(told).alias("value"), f.when(is_large, "high").alias("priority"))
    writer = rows.writeStream.format("goqueue").options(**at, topic="enriched")
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    return sum(progress["numInputRows"] for progress in query.recentProgress)
