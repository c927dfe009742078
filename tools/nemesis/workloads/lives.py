"""Clients of C, one after another. Some calls of librdkafka have no time limit, and Python cannot interrupt them: one
that was silent for too long is left behind, and another takes its place, as an application that is restarted does it.
What was asked of the one left behind has no answer in the history, which means that it may have been done.
"""

import itertools
import threading
import time
from collections.abc import Callable

import confluent_kafka as ck

from tools.nemesis.ending import waits_in
from tools.nemesis.workloads.common import Run

SILENT_S_MAX = 45.0
"""Three times the longest limit that a workload gives to a call."""
LOOK_S = 0.5
PAUSE_S = 0.2
"""Between two lives: one may end at once while nobody can be reached."""


class Life:
    """Of one client. It tells before every call that it is there."""

    def __init__(self, run: Run, name: str) -> None:
        self._run = run
        self.name = name
        """The client's, by which its lines in the log are found."""
        self._seen = time.monotonic()
        self._is_given_up = threading.Event()

    def beat(self) -> None:
        """Before a call."""
        if not self.is_given_up:
            self._seen = time.monotonic()

    def goes_on(self) -> bool:
        if self._run.is_ending.is_set() or self.is_given_up:
            return False
        self.beat()
        return True

    def give_up(self) -> None:
        self._is_given_up.set()

    @property
    def is_given_up(self) -> bool:
        return self._is_given_up.is_set()

    @property
    def silent_s(self) -> float:
        return time.monotonic() - self._seen


def live(run: Run, name: str, work: Callable[[Life], None], silent_s_max: float = SILENT_S_MAX) -> None:
    """Lives one after another, until the run ends."""
    for number in itertools.count():
        if run.is_ending.is_set():
            return
        life = Life(run, f"{name}.{number}")
        thread = threading.Thread(target=_guarded, args=(run, name, work, life), name=name, daemon=True)
        thread.start()
        while thread.is_alive() and life.silent_s < silent_s_max:
            thread.join(LOOK_S)
        if thread.is_alive():
            life.give_up()
            run.notes.append(f"{life.name} was given up: a call of librdkafka did not return, in {waits_in(thread)}")
            run.given_up.append(life.name)
        run.is_ending.wait(PAUSE_S)


def _guarded(run: Run, name: str, work: Callable[[Life], None], life: Life) -> None:
    try:
        work(life)
    except ck.KafkaException as error:
        run.notes.append(f"{name} began anew: {error}")
    except BaseException as error:  # noqa: BLE001  whatever it is, the run proves nothing then
        run.problems.append(f"{name} broke: {error!r}")
    if life.is_given_up:
        run.notes.append(f"{life.name} came back, {life.silent_s:.0f} s after its last call began")
