"""Lets Spark find the data source by its name: PySpark looks for `DefaultSource` in installed modules `pyspark_*`."""

from goqueue.spark.source import GoQueueDataSource as DefaultSource

__all__ = ["DefaultSource"]
