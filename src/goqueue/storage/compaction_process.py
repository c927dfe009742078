"""Compaction in a process of its own, at low priority: in a thread it would cost the broker its latency.

Run as `python -m goqueue.storage.compaction_process ROOT`, with a plan on standard input and a manifest on standard
output.
"""

import asyncio
import os
import sys
from pathlib import Path

from goqueue.storage.compaction import Plan, compact
from goqueue.storage.real_disk import RealDisk
from goqueue.storage.swap import Manifest
from goqueue.telemetry.logs import get_logger

NICENESS = 10

events = get_logger("storage")


async def compact_in_process(root: Path, plan: Plan) -> Manifest | None:
    """What `compact` does, elsewhere. None: nothing to swap in; a failure is logged and leaves the log as it was."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        __name__,
        str(root),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        output, errors = await process.communicate(plan.to_json().encode())
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    if process.returncode != 0:
        reason = errors.decode(errors="replace").strip().rpartition("\n")[2]
        events.error("compaction failed", log=plan.directory, exit_code=process.returncode, reason=reason)
        return None
    return Manifest.from_json(output) if output else None


def main() -> None:
    os.nice(NICENESS)
    manifest = compact(RealDisk(Path(sys.argv[1])), Plan.from_json(sys.stdin.read()))
    if manifest is not None:
        sys.stdout.write(manifest.to_json())


if __name__ == "__main__":
    main()
