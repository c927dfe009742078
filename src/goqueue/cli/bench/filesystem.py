"""Which filesystem a directory is on: a sync to memory and a sync to a disk are not the same figure."""

from pathlib import Path

IN_MEMORY = frozenset({"tmpfs", "ramfs"})


def filesystem_of(directory: Path) -> str:
    return find_filesystem(directory.resolve(), Path("/proc/mounts").read_text("utf-8"))


def find_filesystem(directory: Path, mounts: str) -> str:
    """The type of the filesystem that holds `directory`: of all mount points above it, the nearest and last mounted."""
    nearest, found = Path("/"), "unknown"
    for line in mounts.splitlines():
        _, point, kind, *_ = line.split()
        mounted = Path(point.replace("\\040", " "))
        if directory.is_relative_to(mounted) and mounted.is_relative_to(nearest):
            nearest, found = mounted, kind
    return found
