"""The flags of the jobs: the same from the command line and from spark-submit, and told in one table."""

import shlex
from argparse import ArgumentTypeError

import pytest

from goqueue.cli.parser import parse
from goqueue.spark.jobs.running import one_line
from goqueue.spark.jobs.table import ARCHIVE, JOBS, RESTORE
from goqueue.spark.jobs.words import Job, dashed, parser_of, rate


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_both_ways_of_asking_give_the_same(job: Job) -> None:
    for example in job.examples:
        words = shlex.split(example)
        told = vars(parse(words[1:]))
        submitted = vars(parser_of(job).parse_args(dashed(words[3:], job)))
        shared = submitted.keys() - {"server", "api_key", "output"}
        assert {name: submitted[name] for name in shared if name not in ("start", "stop")} == {
            name: told[name] for name in shared if name not in ("start", "stop")
        }


def test_times_and_rates_are_read_as_people_write_them() -> None:
    given = parser_of(RESTORE).parse_args(dashed(["orders", "--lake", "x", "--from", "-2h", "--rate", "90/m"], RESTORE))
    assert given.rate == 1.5
    assert given.start > 0
    assert (rate("1000"), rate("1000/s"), rate("3600 / h")) == (1000, 1000, 1)
    for wrong in ("fast", "0/s", "-3", "10/d"):
        with pytest.raises(ArgumentTypeError):
            rate(wrong)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "[STREAM_FAILED] Query\ngoqueue.spark.errors.SparkError: there is no topic 'x'\nat java",
            "there is no topic 'x'",
        ),
        (
            "An exception was thrown from the Python worker:\nAttributeError: no attribute 'y'",
            "AttributeError: no attribute 'y'",
        ),
        ("[PARSE_SYNTAX_ERROR] near 'SELEC'\n== SQL ==", "[PARSE_SYNTAX_ERROR] near 'SELEC'"),
        ("", "Exception"),
    ],
)
def test_of_an_error_the_line_that_says_most_is_told(said: str, told: str) -> None:
    assert one_line(Exception(said)) == told


def test_what_is_missing_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        parser_of(ARCHIVE).parse_args(["orders"])
    assert stopped.value.code == 2
    assert "--lake" in capsys.readouterr().err
