"""The end of a run. Workloads are told to end; whoever does not has broken a promise, and what it waits for is told.

Clients of C hang where Python cannot interrupt them. Their threads are left behind, and the process ends without them.
"""

import asyncio
import gc
import json
import os
import shutil
import subprocess
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import httpx

from tools.nemesis.history import Fault

ASK_S_MAX = 5.0
STACKS_S_MAX = 15.0
STATES = ("health", "nodes", "partitions", "events")


def end_all(threads: Sequence[threading.Thread], seconds_max: float) -> list[Fault]:
    """Wait for all of them, together so long."""
    give_up = time.monotonic() + seconds_max
    for thread in threads:
        thread.join(max(0.0, give_up - time.monotonic()))
    return [
        Fault("did not end", f"{thread.name}, {seconds_max:.0f} s after it was told to; it waits in {waits_in(thread)}")
        for thread in threads
        if thread.is_alive()
    ]


def waits_in(thread: threading.Thread) -> str:
    """The line of ours that it is at, and the one below it."""
    frame = sys._current_frames().get(thread.ident or 0)  # noqa: SLF001  there is no other way to another thread
    lines = _lines([each for each, _ in traceback.walk_stack(frame)][::-1]) if frame else []
    for loop in gc.get_objects():
        if isinstance(loop, asyncio.BaseEventLoop) and getattr(loop, "_thread_id", None) == thread.ident:
            for task in asyncio.all_tasks(loop):
                lines += _lines(_awaiting(task.get_coro()))
    return "; ".join(lines) or "nothing: it has just ended"


def _lines(frames: Sequence[FrameType]) -> list[str]:
    ours = [each for each in frames if "nemesis" in Path(each.f_code.co_filename).parts]
    last = [each for each in frames[-1:] if each not in ours[-1:]]
    found = []
    for frame in (*ours[-1:], *last):
        (summary,) = traceback.StackSummary.extract([(frame, frame.f_lineno)])
        found.append(f"{Path(summary.filename).name}:{summary.lineno} {summary.name}: {summary.line}")
    return found


def _awaiting(coroutine: Any) -> list[FrameType]:
    """What it waits for, from the outermost to the innermost."""
    found = []
    while (frame := getattr(coroutine, "cr_frame", None) or getattr(coroutine, "gi_frame", None)) is not None:
        found.append(frame)
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "gi_yieldfrom", None)
    return found


def keep_stacks(folder: Path) -> None:
    """Of this process, whose clients are of C, if there is a debugger."""
    if shutil.which("gdb") is None:
        return
    command = ["gdb", "-batch", "-ex", "thread apply all bt", "-p", str(os.getpid())]
    with (folder / "stacks.txt").open("wb") as file, suppress(subprocess.TimeoutExpired):
        subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, timeout=STACKS_S_MAX, check=False)


def last_words(log: Path, name: str, lines_max: int = 20) -> list[str]:
    """Of the client of that name, as librdkafka wrote them: `%7|time|what|NAME#producer-3| ...`."""
    newest: deque[str] = deque(maxlen=lines_max)
    with log.open("r", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if f"|{name}#" in line:
                newest.append(line.rstrip()[:240])
    return list(newest)


def keep_states(urls: Sequence[str], folder: Path) -> None:
    """What every node thinks of the cluster, for who looks for the reason."""
    for number, url in enumerate(urls, 1):
        found: dict[str, Any] = {}
        for what in STATES:
            try:
                found[what] = httpx.get(f"{url}/v1/cluster/{what}", timeout=ASK_S_MAX, trust_env=False).json()
            except (httpx.HTTPError, ValueError) as error:
                found[what] = repr(error)
        (folder / f"state-of-node-{number}.json").write_text(json.dumps(found, indent=1), "utf-8")
