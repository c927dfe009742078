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

WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")
"""Before a command that shall not outlive the thread that starts it."""
SPACES = ("unshare", "--net", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc")
END_S_MAX = 20.0


def can_enclose() -> bool:
    """Root, with all rights of it: in some containers root may not make namespaces."""
    if os.geteuid() or shutil.which("unshare") is None or shutil.which("ip") is None:
        return False
    return subprocess.run([*SPACES, "true"], capture_output=True, check=False).returncode == 0


def run_enclosed(arguments: Sequence[str], *, with_spaces: bool) -> int:
    """This program once more, with these arguments. Ctrl+C and SIGTERM end it, and all that it has started."""
    command = [*WITH_PARENT, *(SPACES if with_spaces else ()), sys.executable, "-m", "tools.nemesis", *arguments]

    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    child = subprocess.Popen(command, start_new_session=True)
    try:
        return child.wait()
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
