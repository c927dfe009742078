"""Where an etcd program is on this machine that a node would trust: a cluster for trying things out starts it."""

import re
import shutil
import subprocess
from pathlib import Path

from goqueue.cluster.etcd.versions import is_trusted
from goqueue.model.errors import GoQueueError
from goqueue.node.environment import cache_directory

ASK_S_MAX = 10.0
ADVICE = (
    "In a checkout of GoQueue `make etcd` builds one; or install etcd 3.6.9 or later (3.5.28 or later of 3.5), and name"
    " the program with --etcd-binary if it is not on the PATH"
)


class NoEtcd(GoQueueError):
    """There is none, or none that a node would trust. The message says what to do."""


def find_etcd(given: Path | None) -> Path:
    """The one that was named, one on the PATH that is new enough, or the one that `make etcd` has built."""
    if given is not None:
        version = _version(given)
        if not is_trusted(version):
            raise NoEtcd(
                f"{given} is {f'etcd {version}' if version else 'no etcd'}, which a node would refuse. {ADVICE}"
            )
        return given
    on_path = shutil.which("etcd")
    if on_path is not None and is_trusted(_version(Path(on_path))):
        return Path(on_path)
    built = [path for path in cache_directory().glob("etcd-*/etcd") if is_trusted(_version(path))]
    if built:
        return max(built, key=lambda path: tuple(map(int, re.findall(r"\d+", path.parent.name))))
    too_old = f"{on_path} is etcd {_version(Path(on_path))}, which a node would refuse" if on_path else "no etcd found"
    raise NoEtcd(f"{too_old}. {ADVICE}")


def _version(program: Path) -> str:
    """Empty: it is none."""
    command = [str(program), "--version"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=ASK_S_MAX)  # noqa: S603  the user's
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = re.search(r"etcd Version: (\S+)", said.stdout)
    return found[1] if found else ""
