"""What code costs, in lines of Python that it runs: the same on every machine, however busy that is."""

import sys
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any


class Steps:
    """`with Steps() as steps:` counts the lines of all that is called within; what C does for one of them is unseen."""

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> "Steps":
        self._before = sys.gettrace()
        sys.settrace(self._trace)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: TracebackType | None) -> None:
        sys.settrace(self._before)

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        self.count += event == "line"
        return self._trace


def count_steps(happen: Callable[[], object]) -> int:
    with Steps() as steps:
        happen()
    return steps.count
