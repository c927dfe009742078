"""What images and Debian packages are made of: the wheel of this checkout, and those that requirements/run.txt pins.

    python -m tools.image wheels [3.13]    # into build/wheels, for one version of Python
    python -m tools.image sbom             # what is there, as CycloneDX

An image is built without a network from them: what is in it is what was pinned.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from tools.release import build_wheel

ROOT = Path(__file__).parents[1]
WHEELS = ROOT / "build" / "wheels"
PYTHON = "3.13"
"""Of the BASE that the Dockerfile names."""
PLATFORMS = [f"manylinux_2_{minor}_x86_64" for minor in (28, 27, 26, 24, 17, 12, 5)]
PLATFORMS += ["manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64"]
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
    for platform in PLATFORMS:
        command += ["--platform", platform]
    for abi in (f"cp{python.replace('.', '')}", "abi3", "none"):
        command += ["--abi", abi]
    subprocess.run([*command, "--requirement", str(pins)], check=True)
    pins.unlink()
    build_wheel(ROOT, target)
    return target


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
