"""`make nemesis` itself: however a run ends, nothing of it stays."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.process import wait_until


def processes_of(folder: Path) -> list[str]:
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = each.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if str(folder) in command:
            found.append(command)
    return found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["SIGTERM", "SIGKILL"])
def test_a_run_that_is_ended_leaves_no_process_and_no_mount(tmp_path: Path, number: int) -> None:
    folder = tmp_path / "run"
    command = [sys.executable, "-m", "tools.nemesis", "--nodes", "1", "--minutes", "30", "--folder", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as nemesis:
        assert nemesis.stdout is not None
        for line in nemesis.stdout:
            if "kinds of faults" in line:
                break
        wait_until(lambda: any("serve" in each for each in processes_of(folder)), "a node that runs")
        os.kill(nemesis.pid, number)
    wait_until(lambda: not processes_of(folder), "the end of all processes")
    wait_until(lambda: str(folder) not in Path("/proc/self/mountinfo").read_text("utf-8"), "the end of all mounts")
