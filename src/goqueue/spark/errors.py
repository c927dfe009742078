"""How an error reaches the user of Spark: as one line that says what to do, not as a Python stack through the JVM."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from goqueue.model.errors import GoQueueError


class SparkError(GoQueueError):
    """What the user of the data source did wrong, or what went wrong at the broker."""


@contextmanager
def told_in_one_line() -> Iterator[None]:
    """Around every method that Spark calls. The Python processes of Spark write a whole stack unless this variable is
    set when they report an error; they end right after it, so nobody else's stack is hidden.
    """
    try:
        yield
    except (GoQueueError, OSError) as error:
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        if isinstance(error, SparkError):
            raise
        raise SparkError(str(error)) from None
