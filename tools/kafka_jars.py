"""Jars of Apache Kafka, and of Spark's own source for it, fetched once into the user's cache by the Ivy that pyspark
brings along. They need Java.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

import pyspark

from goqueue.node.environment import cache_directory
from tools.alone import alone

FETCH_S_MAX = 300
KAFKA = "org.apache.kafka"
COMMONS = "org.apache.commons"
SPARK = "org.apache.spark"
CONNECTOR = (
    (SPARK, "spark-sql-kafka-0-10_2.13", "4.2.0"),
    (SPARK, "spark-token-provider-kafka-0-10_2.13", "4.1.0-preview1"),
    (KAFKA, "kafka-clients", "3.9.2"),
    (COMMONS, "commons-pool2", "2.13.1"),
)
"""Spark's own source and sink for Kafka. Of its helper for logins, not every registry has the version of Spark."""


class NoJars(Exception):
    """Why they cannot be had."""


def connector_jars() -> list[Path]:
    """Of Spark's own source and sink for Kafka."""
    found = []
    for organisation, module, version in CONNECTOR:
        found.append(find_jars(module, version, organisation, is_alone=True) / f"{module}-{version}.jar")
    return found


def find_jars(module: str, version: str, organisation: str = KAFKA, *, is_alone: bool = False) -> Path:
    """The directory that has a module and, unless it is wanted alone, what it needs; fetched, if this is the first
    time.
    """
    if shutil.which("java") is None:
        raise NoJars("there is no Java on the PATH")
    target = cache_directory() / f"{module}-{version}{'-alone' if is_alone else ''}"
    if target.exists():
        return target
    with alone(target.with_name(f"{target.name}.lock")):
        if not target.exists():
            # On the same file system, so that the last step is a rename: nobody ever sees half of it.
            with tempfile.TemporaryDirectory(dir=target.parent) as directory:
                _fetch(Path(directory), (organisation, module, version), is_alone=is_alone)
                (Path(directory) / "jars").rename(target)
    return target


def _fetch(directory: Path, named: tuple[str, str, str], *, is_alone: bool) -> None:
    _, module, version = named
    (ivy,) = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
    wanted = ["-dependency", *named, "-confs", "default", *(["-notransitive"] if is_alone else [])]
    into = str(directory / "jars" / "[artifact]-[revision](-[classifier]).[ext]")
    call = ["java", "-jar", str(ivy), "-cache", str(directory / "cache"), *wanted, "-retrieve", into]
    try:
        done = subprocess.run(call, capture_output=True, text=True, check=False, timeout=FETCH_S_MAX)
    except subprocess.TimeoutExpired:
        raise NoJars(f"Kafka's jars did not come within {FETCH_S_MAX} s") from None
    if done.returncode or not (directory / "jars" / f"{module}-{version}.jar").exists():
        raise NoJars(f"Kafka's jars cannot be fetched: {(done.stdout + done.stderr)[-2000:]}")
