"""How a job is started and how it ends: the same from the command line, from spark-submit and from a test."""

import re
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.readwriter import DataFrameReader
from pyspark.sql.streaming.readwriter import DataStreamReader

from goqueue.client.errors import UnknownTopic
from goqueue.client.security import Security
from goqueue.model.errors import GoQueueError
from goqueue.spark.connect import Brokers, config_of, http_server
from goqueue.spark.jobs.telling import Teller
from goqueue.spark.jobs.words import Job, dashed, parser_of
from goqueue.spark.options import Options, Part
from goqueue.spark.sessions import key_in_environment, session
from goqueue.spark.source import GoQueueDataSource
from goqueue.spark.where import LOGINS, Where, kafka_at, options_of

EXIT_FAILED, EXIT_USAGE, EXIT_NOT_FOUND, EXIT_UNREACHABLE = 1, 2, 3, 5
PYTHON = "Return Message: Traceback"
OF_PYTHON = "An exception was thrown from the Python worker:"
SILENCE = ("no broker answers", "does not answer")
KAFKA_PORT = 9092
NO_LOGIN: dict[str, Any] = {"api_key": None, "user": None, "password": None, "token": None}
OURS = re.compile(r"(?:SparkError|goqueue[\w.]*Error): (.*)")
"""How an error of ours looks after it went through the JVM."""


class JobFailed(Exception):
    """Ends a job with words for a person and a code for a script."""

    def __init__(self, message: str, code: int = EXIT_FAILED) -> None:
        super().__init__(message)
        self.code = code


R = TypeVar("R", DataFrameReader, DataStreamReader)


@dataclass
class Run:
    """One run of one job: the session, what was asked for, and whom to tell."""

    spark: SparkSession
    given: Namespace
    tell: Teller

    @cached_property
    def kafka(self) -> str:
        return kafka_of(self.given)

    @cached_property
    def at(self) -> dict[str, str]:
        """Options of whatever reads or writes topics: where, and what is shown there."""
        return {"kafka.bootstrap.servers": self.kafka} | shown_by(self.given)

    @cached_property
    def http(self) -> Where:
        named = {"goqueue.server": self.given.server} if self.given.server else {}
        return http_server(Options(self.at | named, Part.BATCH))

    @property
    def server(self) -> str:
        return self.http.address

    def batch(self, *topics: str, **options: Any) -> DataFrame:
        return self._topics(self.spark.read, topics, options).load()

    def stream(self, *topics: str, **options: Any) -> DataFrame:
        return self._topics(self.spark.readStream, topics, options).load()

    def table(self, name: str, **options: Any) -> DataFrame:
        """The server's own state: dlq, traces, lag and so on."""
        reader = self.spark.read.format("goqueue").option("table", name).option("goqueue.server", self.server)
        return reader.options(**shown_by(self.given), **options).load()

    def _topics(self, reader: R, topics: Iterable[str], options: dict[str, Any]) -> R:
        where = {**self.at, "subscribe": ",".join(topics)}
        if options.get("valueFormat", "raw") != "raw":
            where["goqueue.server"] = self.server
        return reader.format("goqueue").options(**(where | options))


Work = Callable[[Run], int]


def kafka_of(given: Namespace) -> str:
    """Where nothing is said, the brokers are where the server is."""
    if given.kafka:
        return str(given.kafka)
    host = urlsplit(given.server or "").hostname or "127.0.0.1"
    return f"[{host}]:{KAFKA_PORT}" if ":" in host else f"{host}:{KAFKA_PORT}"


def shown_by(given: Namespace) -> dict[str, str]:
    """Options that say who asks, and whom to believe: what --option says counts, then the login and --ca."""
    said = dict(given.option)
    security: Security | None = getattr(given, "security", None)  # of `goqueue pipeline`; spark-submit has fewer ways
    if security is not None:
        is_told = bool(said.keys() & LOGINS)
        said = options_of(replace(security, **NO_LOGIN) if is_told else security) | said
        if is_told and security.tls and "kafka.security.protocol" not in dict(given.option):
            said["kafka.security.protocol"] = "SASL_SSL"
    if given.api_key and not said.keys() & LOGINS:
        said["goqueue.api.key"] = given.api_key
    if given.ca:
        said.setdefault("kafka.ssl.truststore.location", given.ca)
        said.setdefault("kafka.security.protocol", "SASL_SSL" if said.keys() & LOGINS else "SSL")
    return said


def submitted(job: Job, work: Work, arguments: Sequence[str] | None = None) -> int:
    """The main() of every job."""
    words = sys.argv[1:] if arguments is None else arguments
    given = parser_of(job).parse_args(dashed(words, job))
    try:
        given.api_key = api_key_of(given.api_key_file)
    except JobFailed as error:
        Teller(given.output).note(str(error))
        return error.code
    return carry_out(job, work, given)


def api_key_of(file: str | None) -> str | None:
    """Never from an argument: everybody on a machine sees those."""
    if file is None:
        key, file = key_in_environment()
        if key or not file:
            return key or None
    try:
        lines = Path(file).expanduser().read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise JobFailed(f"the API key cannot be read: {error}", EXIT_USAGE) from None
    if not lines or not lines[0].strip():
        raise JobFailed(f"{file} holds no API key in its first line", EXIT_USAGE)
    return lines[0].strip()


def carry_out(job: Job, work: Work, given: Namespace) -> int:
    """Returns the exit code of the process."""
    running = SparkSession.getActiveSession()

    def on_spark(tell: Teller) -> int:
        if job.reads_brokers:
            check_topics({"kafka.bootstrap.servers": kafka_of(given)} | shown_by(given), topics_of(given))
        tell.progress("starting Spark ...")
        spark = running or session(f"goqueue {job.name}", given.master, dict(given.conf))
        register(spark)
        code = work(Run(spark, given, tell))
        tell.end()
        return code

    try:
        return concluded(given, on_spark)
    finally:
        if running is None and (started := SparkSession.getActiveSession()) is not None:
            started.stop()


def concluded(given: Namespace, work: Callable[[Teller], int]) -> int:
    """What goes wrong is told in a line."""
    tell = Teller(given.output)
    try:
        return work(tell)
    except (JobFailed, GoQueueError, PySparkException) as error:
        words, code = told(error)
        tell.note(words)
        return code


def register(spark: SparkSession) -> None:
    """Where Spark finds the source by itself, it is there already, and 4.0 says so by an error."""
    try:
        spark.dataSource.register(GoQueueDataSource)
    except AnalysisException as error:
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise


def told(error: Exception) -> tuple[str, int]:
    """Words for a person and a code for a script."""
    if isinstance(error, JobFailed):
        return str(error), error.code
    words = one_line(error)
    if isinstance(error, UnknownTopic):
        return words, EXIT_NOT_FOUND
    return words, EXIT_UNREACHABLE if any(each in words for each in SILENCE) else EXIT_FAILED


def topics_of(given: Namespace) -> list[str]:
    named = getattr(given, "topic", None) or []
    return [named] if isinstance(named, str) else list(named)


def check_topics(at: Mapping[str, str], topics: Iterable[str]) -> dict[str, int]:
    """How many partitions each has. An error here comes at once, before Spark is started."""
    with Brokers(kafka_at(Options(at, Part.BATCH, Part.STREAM))) as brokers:
        return {name: len(brokers.run(brokers.cluster.topic(name)).leaders) for name in topics}


def topic_config(at: Mapping[str, str], topic: str, name: str) -> str:
    with Brokers(kafka_at(Options(at, Part.BATCH, Part.STREAM))) as brokers:
        return brokers.run(config_of(brokers.cluster, topic, name))


def one_line(error: Exception) -> str:
    """What a user wants to read of an error that came through the JVM: our own words, or Spark's first line."""
    said = str(error)
    ours = OURS.findall(said)
    if ours:
        return str(ours[-1]).strip()
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    if PYTHON in said:  # its last line is what was raised; what follows is Java
        return [line for line in lines if not line.startswith("at ")][-1]
    if len(lines) > 1 and lines[0] == OF_PYTHON:
        return lines[1]
    return lines[0] if lines else type(error).__name__
