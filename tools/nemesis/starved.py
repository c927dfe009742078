"""When the machine gave nodes no time: what is late then is no fault of theirs.

The kernel counts how long a thread that could run had to wait for a core (`/proc/PID/schedstat`).
"""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tools.nemesis.history import Window
from tools.nemesis.processes import Process

LOOK_S = 1.0
WAITED_SHARE = 0.3
"""Of a second: a node that waits longer for a core answers late."""
NS = 1_000_000_000


def waited_ns(pid: int) -> int:
    """Of its main thread, which serves. 0: it is gone, or the kernel does not count."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text("ascii").split()[1])
    except (OSError, IndexError, ValueError):
        return 0


class Watch:
    """Looks at nodes from time to time, until `stop`."""

    def __init__(self, processes: Sequence[Process], waited: Callable[[int], int] = waited_ns) -> None:
        self._processes, self._waited = processes, waited
        self._before: dict[int, tuple[float, int]] = {}
        self._is_over = threading.Event()
        self.windows: list[Window] = []
        self._thread = threading.Thread(target=self._run, name="starved", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over.wait(LOOK_S):
            self.look(time.monotonic())

    def look(self, now: float) -> None:
        for process in self._processes:
            if not process.is_running:
                continue
            pid, waited = process.pid, self._waited(process.pid)
            then, before = self._before.get(pid, (now, waited))
            self._before[pid] = now, waited
            if waited - before > WAITED_SHARE * (now - then) * NS:
                self.windows.append(Window(then, now, f"{process.name} got no core"))
