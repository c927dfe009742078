"""What a session gives to the processes that Spark starts."""

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from goqueue.spark import sessions

SPARK = Path(pyspark.__file__).parent
TELL = (
    "import os, sys, pyspark; print(os.environ['PYTHONPATH'], sys.executable, pyspark.__file__, *sys.argv[1:], sep='|')"
)


def test_pyspark_is_imported_where_it_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    path = [f"{SPARK}/python/lib/pyspark.zip", "/some where", f"{SPARK}/jars/spark-core_2.13-4.3.0.jar", "/else*"]
    environment = {**os.environ, "PYTHONPATH": ":".join(path)}
    command = [sessions._python(), "-c", TELL, "two words"]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert said.strip().split("|") == ["/some where:/else*", sys.executable, f"{SPARK}/__init__.py", "two words"]


def test_another_spark_keeps_its_own_pyspark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert sessions._python() == sys.executable
