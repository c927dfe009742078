"""`python -m tools.newer_python 3.12`: says where a Python of at least that version is, and fails if none is found.

Beside those on the PATH, those of pyenv are looked at, whose names on the PATH answer only for the version in use.
"""

import shutil
import subprocess
import sys
from pathlib import Path

MINORS = range(20, 10, -1)


def find(version: str) -> Path | None:
    wanted = tuple(map(int, version.split(".")))
    names = [shutil.which(f"python3.{minor}") for minor in MINORS]
    found = [Path(name) for name in names if name is not None]
    found += sorted(Path.home().glob(".pyenv/versions/3.*/bin/python3"), reverse=True)
    for each in (Path(sys.executable), *found):
        asked = subprocess.run(
            [each, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, check=False
        )
        if asked.returncode == 0 and tuple(map(int, asked.stdout.split())) >= wanted:
            return each
    return None


if __name__ == "__main__":
    place = find(sys.argv[1])
    if place is None:
        sys.exit(f"no Python {sys.argv[1]} or newer is here")
    print(place)
