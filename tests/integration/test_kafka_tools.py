"""`kafka-acls` and `kafka-configs` of Kafka itself, where there is Java: rules, users and quotas of a closed node."""

from pathlib import Path

import pytest

from tools import kafka_tools
from tools.kafka_jars import NoJars, find_jars


@pytest.fixture(scope="module")
def jars() -> Path:
    """Where they cannot be had, the report says why. What goes wrong with them at hand is a failure."""
    try:
        return find_jars(kafka_tools.TOOLS, kafka_tools.VERSION)
    except NoJars as error:
        pytest.skip(f"Kafka's own tools are not tried: {error}")


def test_kafkas_own_tools_are_answered_as_by_kafka(jars: Path, tmp_path: Path) -> None:
    told = list(kafka_tools.ask_all(jars, tmp_path))
    assert len(told) == len(kafka_tools.ASKED)
    assert all(answer.is_right for answer in told), "\n".join(map(str, told))


def test_a_machine_without_java_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoJars, match="no Java"):
        find_jars(kafka_tools.TOOLS, kafka_tools.VERSION)
