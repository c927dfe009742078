"""Calling back whoever waits: a fault in one callback is its own, and must not keep the next from being called."""

from collections.abc import Callable, Iterable

from goqueue.telemetry.logs import get_logger

events = get_logger("callbacks")


def call_each(calls: Iterable[Callable[[], object]]) -> None:
    """Call all of them, in turn. Then raise what the first raised that failed, so that the fault is not hidden; what
    others raised is logged.
    """
    fault: Exception | None = None
    for call in calls:
        try:
            call()
        except Exception as error:  # noqa: BLE001  whatever it was, the others are called
            fault = first_fault(fault, error)
    if fault is not None:
        try:
            raise fault
        finally:
            del fault  # it holds this frame


def first_fault(known: Exception | None, fault: Exception) -> Exception:
    """The one to be raised in the end; the other is logged."""
    if known is None:
        return fault
    events.error("callback failed", exc_info=fault)
    return known
