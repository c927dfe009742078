"""Where a figure was measured. A figure without its machine and its commit says nothing."""

import os
import platform
import subprocess
from pathlib import Path

from goqueue.cli.bench.filesystem import filesystem_of

ROOT = Path(__file__).parents[1]
WRITTEN_BY_BENCHMARKS = (":!benchmarks/results", ":!benchmarks/RESULTS.md", ":!docs/comparison*")


def describe_machine(directory: Path) -> dict[str, object]:
    return {
        "cpu": _first_value("/proc/cpuinfo", "model name") or platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": f"{platform.system()} {platform.release()}",
        "filesystem": filesystem_of(directory),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }


def describe_commit() -> dict[str, object]:
    commit = _git("rev-parse", "--short=10", "HEAD") or "unknown"
    return {"commit": commit, "dirty": bool(_git("status", "--porcelain", "--", ".", *WRITTEN_BY_BENCHMARKS))}


def _git(*arguments: str) -> str:
    result = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return result.stdout.strip()


def _first_value(path: str, key: str) -> str:
    for line in Path(path).read_text("utf-8").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return ""
