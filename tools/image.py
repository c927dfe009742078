"""What images and Debian packages are made of: the wheel of this checkout, and those that requirements/run.txt pins.

    python -m tools.image wheels [3.13]    # into build/wheels, for one version of Python
    python -m tools.image sbom             # what is there, as CycloneDX

An image is built without a network from them: what is in it is what was pinned.
"""

import json
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from tools.release import build_wheel

ROOT = Path(__file__).parents[1]
WHEELS = ROOT / "build" / "wheels"
PYTHON = "3.13"
"""Of the BASE that the Dockerfile names."""
MACHINE = {"arm64": "aarch64"}.get(platform.machine(), platform.machine())
"""Of this machine, as wheels name it: an image, or a package, is for the machine that it is built on."""
PLATFORMS = [f"manylinux_2_{minor}_{MACHINE}" for minor in (28, 27, 26, 24, 17, 12, 5)]
PLATFORMS += [f"{name}_{MACHINE}" for name in ("manylinux2014", "manylinux2010", "manylinux1")]
LIBRARY = re.compile(r"\.so(?:\.|$)")
NOT_RUN = "setuptools=="
"""Pinned to build the package, and not needed to run it."""


def fill(target: Path, python: str = PYTHON) -> Path:
    """With all that one node needs."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    pins = target / "pins.txt"
    lines = (ROOT / "requirements" / "run.txt").read_text("utf-8").splitlines()
    pins.write_text("".join(f"{line}\n" for line in lines if not line.startswith(NOT_RUN)), "utf-8")
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "download", "--no-deps"]
    command += ["--only-binary", ":all:", "--python-version", python, "--implementation", "cp", "--dest", str(target)]
    for each in PLATFORMS:
        command += ["--platform", each]
    for abi in (f"cp{python.replace('.', '')}", "abi3", "none"):
        command += ["--abi", abi]
    subprocess.run([*command, "--requirement", str(pins)], check=True)
    pins.unlink()
    for wheel in target.glob("*.whl"):
        slim(wheel)
    build_wheel(ROOT, target)
    return target


def slim(wheel: Path) -> None:
    """Without what debuggers read: a third of all that would be installed. Nothing that runs is changed."""
    with zipfile.ZipFile(wheel) as given:
        entries = [(entry, given.read(entry)) for entry in given.infolist()]
    if not any(LIBRARY.search(entry.filename) for entry, _ in entries):
        return
    with tempfile.TemporaryDirectory() as directory, zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as made:
        library = Path(directory, "library")
        for entry, content in entries:
            if LIBRARY.search(entry.filename):
                library.write_bytes(content)
                subprocess.run(["strip", "--strip-debug", library], check=True)
                content = library.read_bytes()  # noqa: PLW2901  the same, shorter
            made.writestr(entry, content)


def bill_of_materials(wheels: Path) -> dict[str, object]:
    """What is in the directory, by name and version."""
    parts = []
    for wheel in sorted(wheels.glob("*.whl")):
        name, version = wheel.name.split("-")[:2]
        name = name.replace("_", "-").lower()
        parts.append({"type": "library", "name": name, "version": version, "purl": f"pkg:pypi/{name}@{version}"})
    return {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "components": parts}


def main(words: list[str]) -> int:
    match words:
        case ["wheels", *python]:
            fill(WHEELS, *python[:1])
        case ["sbom"]:
            print(json.dumps(bill_of_materials(WHEELS), indent=2))
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
