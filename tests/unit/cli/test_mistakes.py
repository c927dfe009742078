"""What a person is told who mistypes a command."""

import pytest

from goqueue.cli.main import main
from goqueue.cli.parser import parse


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("topc list", "there is no command 'topc'; did you mean 'topic'?\n  see: goqueue --help"),
        ("topic lst", "there is no command 'lst'; did you mean 'list'?\n  see: goqueue topic --help"),
        ("xyzzy", "there is no command 'xyzzy'\n  see: goqueue --help"),
        ("consume orders --ofset 3", "there is no flag --ofset; did you mean '--offset'?"),
        ("consume orders --limt=3", "there is no flag --limt=3; did you mean '--limit'?"),
        ("consume orders more", "'more' is too much: nothing was expected here"),
        ("consume orders -o jsn", "--output cannot be 'jsn'; did you mean 'json'?"),
        ("consume orders --ack xx", "--ack cannot be 'xx': it can be auto, none, nack, reject"),
        ("consume orders --from-beginning --from-latest", "--from-latest and --from-beginning cannot be said together"),
        ("consume orders -p 0 -p 1", "-p can be said only once"),
        ("consume orders --partition 0 -p 1", "-p can be said only once"),
        ("produce", "TOPIC is missing"),
        ("group reset-offsets", "GROUP and --topic are missing"),
        (
            "group reset-offsets g --topic t",
            "say one of --to-earliest, --to-latest, --to-offset, --to-timestamp",
        ),
        ("consume orders --limit none", "--limit: 'none': expected a whole number of at least 1"),
    ],
)
def test_a_mistake_is_told_in_plain_words(command: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(command.split())
    said = capsys.readouterr()
    assert ended.value.code == 2
    assert said.out == ""
    assert said.err.startswith(f"goqueue: {words}")
    assert len(said.err.splitlines()) == 2


def test_a_flag_that_may_come_again_may(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["produce", "orders", "-m", "a", "-m", "b", "-H", "a=1", "-H", "a=2", "--server", "http://127.0.0.1:1"])
        == 5
    )
    assert "only once" not in capsys.readouterr().err


@pytest.mark.parametrize("time", ["latest", "earliest", "soon"])
def test_what_is_no_time_does_not_say_how_much_is_thrown_away(time: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(["topic", "trim", "orders", "--before-time", time, "--force"])
    assert ended.value.code == 2
    assert "--before-time" in capsys.readouterr().err


@pytest.mark.parametrize("time", ["1794823200000", "100"])
def test_milliseconds_since_1970_are_a_time_and_no_offset(time: str) -> None:
    """The node takes a text for a time and a number for an offset."""
    assert parse(["topic", "trim", "orders", "--before-time", time]).before_time == time
