"""Waiting for what nobody tells: a file, a port, an unmounted disk."""

import threading
import time
from collections.abc import Callable


def wait_until(is_done: Callable[[], bool], seconds_max: float) -> bool:
    pause = threading.Event()
    give_up = time.monotonic() + seconds_max
    while not is_done():
        if time.monotonic() > give_up:
            return False
        pause.wait(0.05)
    return True
