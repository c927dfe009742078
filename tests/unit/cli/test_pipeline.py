"""`goqueue pipeline` where Spark is not installed."""

import sys

import pytest

from goqueue.cli.main import main


@pytest.mark.parametrize("missing", ["pyspark", "pyarrow"])
def test_what_to_install_is_said_in_one_line(
    missing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    assert main(["pipeline", "archive", "orders", "--lake", "lake"]) == 2
    said = capsys.readouterr()
    assert said.err.startswith("goqueue: pipeline archive needs the extra spark; install it with: ")
    assert said.err.endswith("-m pip install 'goqueue[spark]'\n")
    assert said.err.count("\n") == 1
