"""`goqueue bench`: what it refuses before it measures anything. Measuring is in integration."""

import sys

import pytest

from goqueue.cli.main import main


def refusal(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as stopped:
        main(["bench", *arguments])
    assert stopped.value.code == 2
    return capsys.readouterr().err.splitlines()[0]


@pytest.mark.parametrize("kind", ["produce", "consume", "latency"])
@pytest.mark.parametrize("number", ["0", "-1", "many", "1.5", "", str(10**10)])
def test_a_number_that_makes_no_sense_is_refused(kind: str, number: str, capsys: pytest.CaptureFixture[str]) -> None:
    for flag, at_most in (("--messages", 10**9), ("--bytes", 999_000), ("--partitions", 1000)):
        expected = f"goqueue: {flag}: {number!r}: expected a whole number from 1 to {at_most}"
        assert refusal([kind, f"{flag}={number}"], capsys) == expected


def test_a_batch_that_no_broker_takes_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert refusal(["produce", "--batch", "1000", "--bytes", "1000"], capsys).endswith(
        "--batch 1000 with --bytes 1000: a batch has at most 1000000 bytes"
    )


@pytest.mark.parametrize("address", ["9092", "localhost", "localhost:", ":9092", "localhost:kafka", "::1:9092"])
def test_an_address_without_host_and_port_is_refused(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"{address!r}: expected HOST:PORT" in refusal(["produce", f"--kafka={address}"], capsys)


def test_a_directory_for_the_broker_of_somebody_else_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--directory" in refusal(["consume", "--kafka", "127.0.0.1:9092", "--directory", "x"], capsys)


def test_a_durability_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--durability" in refusal(["latency", "--durability", "memory"], capsys)


def test_nothing_to_measure_shows_the_help_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench"]) == 2
    shown = capsys.readouterr().err
    assert [kind for kind in ("produce", "consume", "latency") if kind not in shown] == []


def test_a_missing_load_generator_is_named_with_the_way_to_install_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("goqueue.cli.bench.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    assert main(["bench", "produce"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        "goqueue: bench produce needs the extra bench; "
        f"install it with: {sys.executable} -m pip install 'goqueue[bench]'\n"
    )


def test_a_directory_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "produce", "--directory", "no/such/place"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("goqueue: cannot make a directory for the broker: No such file or directory: ")
    assert len(said.err.splitlines()) == 1
