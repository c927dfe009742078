"""Structured logs: one event name and its key values, so that a person can read them and a machine can search them.

Every module may take a logger when it is imported: nothing heavy is loaded before the first event. Only the process
that owns the terminal calls `configure_logs`. Elsewhere, in somebody's program that uses the client or a broker in its
tests, events go to the standard `logging`, under `goqueue`, and its levels and handlers decide.
"""

import sys
from collections.abc import Mapping, MutableMapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from structlog.typing import Processor


PACKAGE = "goqueue"


class LogFormat(StrEnum):
    AUTO = "auto"
    """Console on a terminal, JSON lines everywhere else."""
    JSON = "json"
    CONSOLE = "console"


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Logger:
    """Writes events of one room. The event is a constant; what varies goes into the fields."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def debug(self, event: str, **fields: object) -> None:
        self._write(LogLevel.DEBUG, event, fields)

    def info(self, event: str, **fields: object) -> None:
        self._write(LogLevel.INFO, event, fields)

    def warning(self, event: str, **fields: object) -> None:
        self._write(LogLevel.WARNING, event, fields)

    def error(self, event: str, **fields: object) -> None:
        """`exc_info=error` adds what was raised and where, in the same line."""
        self._write(LogLevel.ERROR, event, fields)

    def _write(self, level: LogLevel, event: str, fields: Mapping[str, object]) -> None:
        if _Owner.is_this_process:
            import structlog

            getattr(structlog.get_logger(), level)(event, logger=self.name, **fields)
            return
        import logging

        name = self.name.replace(" ", "_")
        logger = logging.getLogger(name if name.startswith(PACKAGE) else f"{PACKAGE}.{name}")
        number = logging.getLevelNamesMapping()[level.upper()]
        if logger.isEnabledFor(number):
            error: Any = fields.get("exc_info")
            logger.log(number, "%s", in_words(event, fields), exc_info=error, stacklevel=3)


class _Owner:
    is_this_process = False
    """Whether this process writes its logs itself, in our shape."""


def write_in_our_shape() -> None:
    """All events of this process go through structlog from now on, as it is configured."""
    _Owner.is_this_process = True


def in_words(event: str, fields: Mapping[str, object]) -> str:
    """An event as one line of text."""
    return " ".join([event, *(f"{name}={value!r}" for name, value in fields.items() if name != "exc_info")])


def get_logger(name: str) -> Logger:
    return Logger(name)


def resolve_format(log_format: LogFormat, stream: TextIO) -> LogFormat:
    """What `auto` means for this stream."""
    if log_format is not LogFormat.AUTO:
        return log_format
    return LogFormat.CONSOLE if stream.isatty() else LogFormat.JSON


def configure_logs(
    level: LogLevel,
    log_format: LogFormat,
    stream: TextIO | None = None,
    always: Mapping[str, object] | None = None,
) -> None:
    """Send all events of this process, those of the standard library's logging too, to one stream (stderr). `always`:
    what stands in each of them."""
    import logging

    import structlog

    write_in_our_shape()
    stream = stream or sys.stderr
    threshold = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=_processors(resolve_format(log_format, stream), always or {}, has_colors=stream.isatty()),
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.WriteLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )

    class Forwarder(logging.Handler):
        """Libraries log through `logging`; their events look like ours."""

        def emit(self, record: logging.LogRecord) -> None:
            structlog.get_logger().log(
                record.levelno, record.getMessage(), logger=record.name, exc_info=record.exc_info
            )

    logging.basicConfig(level=max(threshold, logging.WARNING), handlers=[Forwarder()], force=True)


def _processors(log_format: LogFormat, always: Mapping[str, object], *, has_colors: bool) -> list["Processor"]:
    import structlog

    def add_always(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        event.update(always)
        return event

    console = log_format is LogFormat.CONSOLE
    stamp = structlog.processors.TimeStamper(
        fmt="%H:%M:%S" if console else "iso",
        utc=not console,  # a person reads the clock on the wall, a machine compares nodes
        key="time",
    )
    common: list[Processor] = [add_always, structlog.processors.add_log_level, stamp, _name_error]
    if console:
        return [*common, _drop_stack, structlog.dev.ConsoleRenderer(colors=has_colors, timestamp_key="time")]
    return [*common, _head_first, structlog.processors.JSONRenderer(default=str)]


def _name_error(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Replace `exc_info` by what was raised, where, and the stack as one string."""
    exc_info = event.pop("exc_info", None)
    error = exc_info[1] if isinstance(exc_info, tuple) else exc_info
    if isinstance(error, BaseException):
        import traceback

        frames = traceback.extract_tb(error.__traceback__)
        event["error"] = " ".join(f"{type(error).__name__}: {error}".split())
        if frames:
            event["at"] = f"{frames[-1].filename}:{frames[-1].lineno}"
        event["stack"] = "".join(traceback.format_exception(error))
    return event


def _head_first(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A person who meets the JSON finds when, how bad and what at the same place in every line."""
    return {key: event.pop(key) for key in ("time", "level", "event")} | dict(event)


def _drop_stack(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A stack over many lines gets lost between other lines; on a terminal `error` and `at` must do."""
    event.pop("stack", None)
    return event
