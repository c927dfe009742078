"""`goqueue` with a wall clock that another process sets: it is ahead by as many milliseconds as a file says.

The file is mapped into both processes, because a node asks for the time some ten thousand times a second.
"""

import mmap
import struct
import sys
import time
from pathlib import Path

AHEAD_MS = struct.Struct("<q")


def set_ahead(path: Path, ahead_ms: int) -> None:
    """Eight bytes in one write: a read never finds half of them."""
    if not path.exists():
        path.write_bytes(AHEAD_MS.pack(0))
    with path.open("r+b", buffering=0) as file:
        file.write(AHEAD_MS.pack(ahead_ms))


def _step(path: Path) -> None:
    with path.open("rb") as file:
        ahead = mmap.mmap(file.fileno(), AHEAD_MS.size, prot=mmap.PROT_READ)
    real_ns = time.time_ns

    def stepped_ns() -> int:
        return real_ns() + int(AHEAD_MS.unpack_from(ahead)[0]) * 1_000_000

    time.time_ns = stepped_ns
    time.time = lambda: stepped_ns() / 1e9


if __name__ == "__main__":
    from goqueue.cli.main import main

    _step(Path(sys.argv[1]))
    sys.argv = ["goqueue", *sys.argv[2:]]
    sys.exit(main())
