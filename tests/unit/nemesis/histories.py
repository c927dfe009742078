"""Hand-made histories: operations in a few words."""

from typing import Any

from tools.nemesis.history import FAIL, NEVER, OK, UNKNOWN, Fault, Operation


def done(process: str, what: str, times: tuple[float, float], asked: dict[str, Any], /, **answer: Any) -> Operation:
    return Operation(process, what, asked, *times, OK, answer)


def failed(process: str, what: str, times: tuple[float, float], /, **asked: Any) -> Operation:
    return Operation(process, what, asked, *times, FAIL, {})


def unknown(process: str, what: str, began: float, /, **asked: Any) -> Operation:
    return Operation(process, what, asked, began, NEVER, UNKNOWN, {})


def kinds(faults: list[Fault]) -> list[str]:
    return [fault.kind for fault in faults]
