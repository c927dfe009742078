"""Programs of Debian's packages without installing them: fetched by apt, unpacked into the user's cache, once.

Nothing of the system is changed and no service is started; no rights are needed that a user has not. Where a package
is installed, it is used as it is.
"""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from goqueue.node.environment import cache_directory
from tools.alone import alone

FETCH_S_MAX = 600
INSTALLED = Path("/")


class NoPackage(Exception):
    """Why it cannot be had."""


def find_package(name: str, say: Callable[[str], None] = lambda words: None) -> Path:
    """The directory that stands for `/` in the paths of the package and of what it needs."""
    target = cache_directory() / f"debian-{name}"
    if target.exists():
        return target
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise NoPackage(f"{name} comes from Debian's packages, and there is no apt-get here")
    with alone(target.with_suffix(".lock")):
        if target.exists():
            return target
        missing = missing_packages(_run(["apt-get", "--simulate", "install", "--no-install-recommends", name]))
        if not missing:
            return INSTALLED
        say(f"fetching {name} and what it needs: {len(missing)} packages, once")
        # On the same file system, so that the last step is a rename: nobody ever sees half of it.
        with TemporaryDirectory(dir=target.parent) as directory:
            root = Path(directory, "root")
            _run(["apt-get", "download", *missing], Path(directory))
            for package in sorted(Path(directory).glob("*.deb")):
                _run(["dpkg-deb", "--extract", str(package), str(root)])
            root.rename(target)
    return target


def missing_packages(said: str) -> list[str]:
    """Those that apt would install."""
    return [line.split()[1] for line in said.splitlines() if line.startswith("Inst ")]


def _run(command: list[str], cwd: Path = INSTALLED) -> str:
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=FETCH_S_MAX)
    except subprocess.TimeoutExpired:
        raise NoPackage(f"{' '.join(command)} took more than {FETCH_S_MAX} s") from None
    if done.returncode:
        raise NoPackage(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout
