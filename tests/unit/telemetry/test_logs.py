"""Logs: one event per line, readable by a person or by a machine, whatever happened."""

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest
import structlog

from goqueue.model.secret import Secret
from goqueue.telemetry.logs import LogFormat, LogLevel, configure_logs, get_logger, resolve_format

log = get_logger("storage")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def restore_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


def json_lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_an_event_is_one_json_line_with_its_fields() -> None:
    stream = io.StringIO()
    configure_logs(LogLevel.INFO, LogFormat.AUTO, stream)
    log.error("damaged batch", log="orders/0", offset=12)
    (event,) = json_lines(stream)
    time = event.pop("time")
    assert isinstance(time, str)
    assert time.endswith("Z")
    assert event == {"event": "damaged batch", "level": "error", "logger": "storage", "log": "orders/0", "offset": 12}


def test_on_a_terminal_an_event_is_one_readable_line() -> None:
    stream = Terminal()
    configure_logs(LogLevel.INFO, LogFormat.CONSOLE, stream)
    log.info("rolled segment", log="orders/0", base_offset=7)
    (line,) = stream.getvalue().splitlines()
    for part in ("rolled segment", "orders/0", "7"):
        assert part in line


@pytest.mark.parametrize("form", [LogFormat.JSON, LogFormat.CONSOLE])
def test_a_secret_is_not_written(form: LogFormat) -> None:
    stream = io.StringIO()
    configure_logs(LogLevel.DEBUG, form, stream)
    hidden = Secret("MARKED-7f3")
    log.warning("refused", password=hidden, all=[hidden], exc_info=ValueError(hidden))
    assert "refused" in stream.getvalue()
    assert "***" in stream.getvalue()
    assert "MARKED" not in stream.getvalue()


def test_events_below_the_level_are_not_written() -> None:
    stream = io.StringIO()
    configure_logs(LogLevel.WARNING, LogFormat.JSON, stream)
    log.debug("a")
    log.info("b")
    log.warning("c")
    assert [event["event"] for event in json_lines(stream)] == ["c"]


@pytest.mark.parametrize("log_format", [LogFormat.JSON, LogFormat.CONSOLE])
def test_an_error_takes_one_line_and_says_what_and_where(log_format: LogFormat) -> None:
    stream = io.StringIO()
    configure_logs(LogLevel.INFO, log_format, stream)
    try:
        raise OSError(28, "No space\nleft")
    except OSError as error:
        log.error("append failed", exc_info=error)
    (line,) = stream.getvalue().splitlines()
    assert "OSError: [Errno 28] No space left" in line
    assert "test_logs.py:" in line


def test_the_stack_of_an_error_is_kept_for_machines() -> None:
    stream = io.StringIO()
    configure_logs(LogLevel.INFO, LogFormat.JSON, stream)
    log.error("append failed", exc_info=ValueError("never raised"))
    (event,) = json_lines(stream)
    assert event["stack"] == "ValueError: never raised\n"
    assert "at" not in event


def test_a_value_that_json_does_not_know_is_written_as_text() -> None:
    stream = io.StringIO()
    configure_logs(LogLevel.INFO, LogFormat.JSON, stream)
    log.info("opened", data={1}, raw=b"x")
    (event,) = json_lines(stream)
    assert (event["data"], event["raw"]) == ("{1}", "b'x'")


def test_warnings_of_libraries_come_out_in_the_same_shape() -> None:
    stream = io.StringIO()
    configure_logs(LogLevel.INFO, LogFormat.JSON, stream)
    logging.getLogger("asyncio").warning("slow callback %d", 3)
    logging.getLogger("asyncio").info("not shown")
    (event,) = json_lines(stream)
    assert (event["event"], event["logger"], event["level"]) == ("slow callback 3", "asyncio", "warning")


def test_auto_means_console_on_a_terminal_and_json_elsewhere() -> None:
    assert resolve_format(LogFormat.AUTO, Terminal()) is LogFormat.CONSOLE
    assert resolve_format(LogFormat.AUTO, io.StringIO()) is LogFormat.JSON
    assert resolve_format(LogFormat.JSON, Terminal()) is LogFormat.JSON


EMBEDDED = """
import {setup}
from goqueue.telemetry.logs import get_logger

log = get_logger("goqueue.client")
log.debug("a detail")
log.info("a lease was lost", job="orders/0/17")
log.warning("cannot lease", topic="orders")


def handle(order):
    password = "secret" + "-of-a-local-variable"
    raise ValueError("no stock")


try:
    handle("x")
except ValueError as error:
    log.error("a handler failed", exc_info=error)
"""


def embedded(setup: str) -> subprocess.CompletedProcess[str]:
    """In somebody else's program, where rich is installed."""
    code = EMBEDDED.format(setup=setup)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)


@pytest.mark.parametrize("setup", ["logging", "structlog", "rich, structlog; structlog.configure()"])
def test_in_another_program_events_go_to_the_standard_logging(setup: str) -> None:
    done = embedded(setup)
    assert done.stdout == ""
    assert "secret-of-a-local-variable" not in done.stderr
    lines = done.stderr.splitlines()
    assert lines[:2] == ["cannot lease topic='orders'", "a handler failed"]  # warnings and worse, as logging has it
    assert lines[-1] == "ValueError: no stock"


def test_another_program_decides_what_it_wants_to_see() -> None:
    done = embedded("logging; logging.basicConfig(level='INFO', format='%(levelname)s %(name)s %(message)s')")
    assert done.stderr.splitlines()[:2] == [
        "INFO goqueue.client a lease was lost job='orders/0/17'",
        "WARNING goqueue.client cannot lease topic='orders'",
    ]
    assert embedded("logging; logging.getLogger('goqueue').setLevel('CRITICAL')").stderr == ""


def test_taking_a_logger_loads_nothing_heavy() -> None:
    code = (
        "import sys; from goqueue.telemetry.logs import get_logger; get_logger('x');"
        "sys.exit(bool({'structlog', 'logging', 'json'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
