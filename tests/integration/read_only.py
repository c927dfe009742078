"""A node whose filesystem turns read-only under it, for real where the machine allows that: ext4 on a file, mounted
where only the node sees it, which the kernel shuts after an error. `mount -o remount,ro` would not do: it is refused
while files are open for writing. Where nothing can be mounted, the system calls are made to fail instead, or there is
no room for a single byte more.
"""

import os
import resource
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.integration.process import GOQUEUE, Node

IMAGE_BYTES = 512 * 1024 * 1024
"""Of holes, mostly."""
MOUNT = 'mount -o loop,errors=remount-ro "$1" "$2" && shift 2 && exec "$@"'
SYS = Path("/sys/fs/ext4")


def on_own_filesystem(directory: Path) -> tuple[Node, Callable[[], object]] | None:
    """A node that was not started yet, and what shuts its filesystem while it runs. None: that cannot be done here."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "mount", "mkfs.ext4"))) or not SYS.is_dir():
        return None
    node, image = Node(directory), directory / "image"
    node.data_dir.mkdir()
    with image.open("wb") as file:
        file.truncate(IMAGE_BYTES)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
    seen_by_nobody_else = ["unshare", "--mount", "--propagation", "private", "sh", "-c", MOUNT, "sh"]
    in_it = [*seen_by_nobody_else, str(image), str(node.data_dir)]
    tried = subprocess.run([*in_it, "true"], check=False, capture_output=True)
    if tried.returncode != 0:
        return None
    node.program = [*in_it, str(GOQUEUE)]
    return node, lambda: (SYS / _device(node) / "trigger_fs_error").write_text("1", "ascii")


def is_read_only(node: Node) -> bool:
    return any("emergency_ro" in line or " ro," in line for line in _mounted(node))


def _mounted(node: Node) -> list[str]:
    mounts = Path(f"/proc/{node.pid}/mounts").read_text("utf-8").splitlines()
    return [line for line in mounts if line.split()[1] == str(node.data_dir)]


def _device(node: Node) -> str:
    (line,) = _mounted(node)
    return Path(line.split()[0]).name


def leave_no_room(node: Node) -> None:
    """No file may be longer than nothing: every write fails, and the node, like every Python, survives the signal."""
    _, hard = resource.prlimit(node.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(node.pid, resource.RLIMIT_FSIZE, (0, hard))
