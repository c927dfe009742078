"""A stream that cannot be: Spark hides what is raised while a stream reader is made, so it is told a moment later."""

from typing import Any, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader

from goqueue.spark.errors import SparkError, told_in_one_line


class RefusedStream(DataSourceStreamReader):
    def __init__(self, error: SparkError) -> None:
        self._error = error

    def _refuse(self) -> NoReturn:
        with told_in_one_line():
            raise self._error

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  Spark's names, here and below
        self._refuse()

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]  # noqa: N802
        self._refuse()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Any:  # noqa: ARG002
        self._refuse()

    def read(self, partition: Any) -> Any:  # noqa: ARG002
        self._refuse()
