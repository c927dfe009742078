"""Where a run takes place, so that nothing of it is left however it ends: its processes are in a process namespace that
dies with the first of them, its mounts and networks in namespaces that die with the last. Who is not root does without;
then every process asks the kernel to be killed when the one that started it is gone.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")
"""Before a command that shall not outlive the thread that starts it."""
SPACES = ("unshare", "--net", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc")
END_S_MAX = 20.0


def cannot_enclose() -> str:
    """Why not; empty if it can. In some containers root, too, may make no namespaces."""
    if os.geteuid():
        return "not root"
    for tool in ("unshare", "ip"):
        if shutil.which(tool) is None:
            return f"there is no {tool}"
    done = subprocess.run([*SPACES, "true"], capture_output=True, text=True, check=False)
    return done.stderr.strip() or f"unshare ends with {done.returncode}" if done.returncode else ""


def run_enclosed(arguments: Sequence[str], with_spaces: bool, seconds_max: float, errors: Path) -> int:
    """This program once more, with these arguments. Ctrl+C, SIGTERM and the end of its time end it, and all that it has
    started. What clients write to stderr is kept in a file: they tell of every connection that is refused.
    """
    command = [*WITH_PARENT, *(SPACES if with_spaces else ()), sys.executable, "-m", "tools.nemesis", *arguments]

    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    with errors.open("ab") as file:
        child = subprocess.Popen(command, start_new_session=True, stderr=file)
    try:
        return child.wait(seconds_max)
    except subprocess.TimeoutExpired:
        print(f"it had not ended after {seconds_max:.0f} s, so it was ended", flush=True)
        return 1
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        return 130
    finally:
        signal.signal(signal.SIGTERM, previous)
        child.kill()
        child.wait(END_S_MAX)


def furnish() -> None:
    """What namespaces lack: a network of their own has no loopback yet, and `ip netns` keeps names below /run, which is
    everybody's.
    """
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "nemesis", "/run"], check=True)
