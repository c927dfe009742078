"""A broker that restarts is waited for: what is asked here may be asked twice."""

import threading
import time
from collections.abc import Callable
from random import Random
from typing import TypeVar

from goqueue.client.clock import Backoff
from goqueue.client.errors import ClientError
from goqueue.spark.connect import PATIENCE_S

T = TypeVar("T")


def patiently(ask: Callable[[], T], patience_s: float = PATIENCE_S) -> T:
    """ClientError: it was refused for good, or nobody answered for so long."""
    backoff, dice, pause = Backoff(), Random(), threading.Event()  # noqa: S311  jitter
    give_up_s = time.monotonic() + patience_s
    attempt = 0
    while True:
        try:
            return ask()
        except ClientError as error:
            pause_s = backoff.pause_s(attempt, dice)
            if not error.retriable or time.monotonic() + pause_s > give_up_s:
                raise
        attempt += 1
        pause.wait(pause_s)
