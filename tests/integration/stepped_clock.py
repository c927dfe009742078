"""`goqueue` with a wall clock that another process sets: it is ahead by as many milliseconds as a file says."""

import sys
import time
from pathlib import Path

from goqueue.cli.main import main

ahead, *arguments = sys.argv[1:]
_time_ns = time.time_ns


def stepped_ns() -> int:
    return _time_ns() + int(Path(ahead).read_text("ascii")) * 1_000_000


if __name__ == "__main__":
    time.time_ns = stepped_ns
    time.time = lambda: stepped_ns() / 1e9
    sys.argv = ["goqueue", *arguments]
    sys.exit(main())
