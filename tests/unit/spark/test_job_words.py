"""The flags of the jobs: the same from the command line and from spark-submit, and told in one table."""

import shlex
from argparse import ArgumentTypeError
from dataclasses import replace
from pathlib import Path

import pytest

from goqueue.cli.parser import parse
from goqueue.client.security import Security
from goqueue.spark.errors import SparkError
from goqueue.spark.jobs.running import JobFailed, api_key_of, one_line, shown_by
from goqueue.spark.jobs.table import ARCHIVE, DLQ, JOBS, RESTORE
from goqueue.spark.jobs.words import Job, dashed, parser_of, rate
from goqueue.spark.options import Options, Part
from goqueue.spark.where import security_of


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_both_ways_of_asking_give_the_same(job: Job) -> None:
    for example in job.examples:
        words = shlex.split(example)
        told = vars(parse(words[1:]))
        submitted = vars(parser_of(job).parse_args(dashed(words[3:], job)))
        shared = submitted.keys() - {"server", "api_key_file", "ca", "output"}
        assert {name: submitted[name] for name in shared if name not in ("start", "stop")} == {
            name: told[name] for name in shared if name not in ("start", "stop")
        }


def test_a_key_comes_from_a_file_or_a_variable_and_never_from_an_argument(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GOQUEUE_API_KEY", raising=False)
    monkeypatch.delenv("GOQUEUE_API_KEY_FILE", raising=False)
    (tmp_path / "one").write_text("gqk_one\n")
    (tmp_path / "two").write_text("gqk_two\n")
    seen: list[str | None] = []
    cases: list[tuple[list[str], str, str]] = [
        ([], "GOQUEUE_API_KEY_FILE", ""),
        ([], "GOQUEUE_API_KEY_FILE", str(tmp_path / "one")),
        ([], "GOQUEUE_API_KEY", "gqk_three"),
        (["--api-key-file", str(tmp_path / "two")], "GOQUEUE_API_KEY", "gqk_three"),
    ]
    for arguments, name, value in cases:
        monkeypatch.setenv(name, value)
        given = parser_of(DLQ).parse_args(["orders", *arguments])
        seen.append(api_key_of(given.api_key_file))
    assert seen == [None, "gqk_one", "gqk_three", "gqk_two"]
    with pytest.raises(JobFailed, match="cannot be read"):
        api_key_of(str(tmp_path / "none"))
    with pytest.raises(SystemExit):
        parser_of(DLQ).parse_args(["orders", "--api-key", "gqk_four"])
    assert "--api-key" in capsys.readouterr().err


def test_a_job_shows_its_key_wherever_it_reads_or_writes(capsys: pytest.CaptureFixture[str]) -> None:
    def shown(*words: str, key: str | None = None) -> dict[str, str]:
        given = parser_of(DLQ).parse_args(["orders", *words])
        given.api_key = key
        return shown_by(given)

    assert shown() == {}
    assert shown(key="gqk_one") == {"goqueue.api.key": "gqk_one"}
    tls = {"kafka.ssl.truststore.location": "ca.pem"}
    assert shown("--ca", "ca.pem") == {**tls, "kafka.security.protocol": "SSL"}
    in_file = {"goqueue.api.key.file": "k"}
    said = shown("--ca", "ca.pem", "--option", "goqueue.api.key.file=k", key="gqk_one")
    assert said == {**tls, **in_file, "kafka.security.protocol": "SASL_SSL"}
    for secret in ("goqueue.api.key=gqk_one", "kafka.sasl.jaas.config=x", "kafka.ssl.key.password=x"):
        with pytest.raises(SystemExit):
            shown("--option", secret)
        assert "everybody on this machine sees arguments" in capsys.readouterr().err


def test_a_job_shows_the_user_and_the_files_of_a_context(tmp_path: Path) -> None:
    made = Security(
        user='a"b', password='p"\\w', mechanism="SCRAM-SHA-512", tls=True, ca_file="ca.pem", cert_file="c", key_file="k"
    )
    full = replace(made, key_password="unlock", tenant="acme")

    def understood(security: Security, *words: str) -> Security | None:
        given = parser_of(DLQ).parse_args(["orders", *words])
        given.api_key, given.ca, given.security = None, None, security
        return security_of(Options(shown_by(given), Part.BATCH))

    assert understood(full) == full
    assert understood(Security()) is None
    key = f"gqk_k{'0' * 16}_{'ab' * 32}"
    assert understood(Security(api_key=key)) == Security(api_key=key)
    file = tmp_path / "key"
    file.write_text(key)
    other = understood(full, "--option", f"goqueue.api.key.file={file}")  # what is said goes before the context
    assert other == replace(full, api_key=key, user=None, password=None, mechanism="SCRAM-SHA-256")
    with pytest.raises(SparkError, match="no token"):
        understood(Security(token="x"))


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
