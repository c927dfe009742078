"""A release: `make release VERSION=0.2.0` in a clean checkout of main.

It gives the version its section in CHANGELOG.md, makes today's API the one that must not be broken, keeps a data
directory of this version for the upgrade tests, builds the wheel, checks what is in it, commits and tags.
Nothing is pushed: look at it, then `git push --follow-tags`.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
SHAPE = re.compile(r"\d+\.\d+\.\d+")
UNRELEASED = "## Unreleased\n"
# pyspark finds data sources by the beginning of a package's name.
PACKAGES = ("goqueue/", "pyspark_goqueue/", "goqueue-")


class NotReleased(Exception):
    """Says what is in the way."""


def close_changelog(text: str, version: str, day: str) -> str:
    """What is unreleased belongs to `version`; above it a new section begins."""
    before, found, rest = text.partition(UNRELEASED)
    if not found or not rest.partition("\n## ")[0].strip():
        raise NotReleased("CHANGELOG.md has nothing under Unreleased: a release needs something that users notice")
    if f"\n## {version} " in text:
        raise NotReleased(f"CHANGELOG.md has a section for {version} already")
    return f"{before}{UNRELEASED}\n## {version} ({day})\n{rest}"


def set_version(text: str, version: str) -> str:
    """In pyproject.toml, the one place that has it."""
    changed, count = re.subn(r'(?m)^version = "[^"]+"$', f'version = "{version}"', text, count=1)
    if not count:
        raise NotReleased("pyproject.toml has no line with the version")
    return changed


def build_wheel(source: Path, target: Path) -> Path:
    """The wheel of a checkout, with the setuptools that is pinned, so that nothing is fetched.

    Of a copy: setuptools works in the folder `build` beside the sources, where two at a time disturb each other."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "wheel", "--no-deps"]
    with tempfile.TemporaryDirectory() as directory:
        copied = Path(directory)
        shutil.copytree(source / "src", copied / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(source / name, copied)
        subprocess.run([*command, "--no-build-isolation", "--wheel-dir", str(target), str(copied)], check=True)
    (wheel,) = target.glob("goqueue-*.whl")
    return wheel


def check_wheel(wheel: Path) -> None:
    """It has the package with its types and licence, and nothing of the tests and tools."""
    names = zipfile.ZipFile(wheel).namelist()
    for needed in ("goqueue/__init__.py", "goqueue/py.typed"):
        if needed not in names:
            raise NotReleased(f"the wheel lacks {needed}")
    strange = [name for name in names if not name.startswith(PACKAGES)]
    if strange:
        raise NotReleased(f"the wheel has {strange[0]}, which is no part of the package")


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def release(version: str) -> None:
    if not SHAPE.fullmatch(version):
        raise NotReleased(f"{version!r} is no version: use three numbers, such as 0.2.0")
    if _git("status", "--porcelain"):
        raise NotReleased("there are changes that are not committed")
    if f"v{version}" in _git("tag").splitlines():
        raise NotReleased(f"the tag v{version} is there already")
    day = datetime.now(UTC).date().isoformat()
    changelog, project = ROOT / "CHANGELOG.md", ROOT / "pyproject.toml"
    new_changelog = close_changelog(changelog.read_text("utf-8"), version, day)
    new_project = set_version(project.read_text("utf-8"), version)
    changelog.write_text(new_changelog, "utf-8")
    project.write_text(new_project, "utf-8")
    for step in (["tools.api", "--release"], ["tests.upgrade.make", version]):
        print(f"release: {step[0]}", flush=True)
        subprocess.run([sys.executable, "-m", *step], cwd=ROOT, check=True)
    with tempfile.TemporaryDirectory() as directory:
        print("release: building the wheel", flush=True)
        wheel = build_wheel(ROOT, Path(directory))
        check_wheel(wheel)
        target = ROOT / "dist"
        target.mkdir(exist_ok=True)
        (target / wheel.name).write_bytes(wheel.read_bytes())
    _git("add", "--all")
    _git("commit", "--message", f"release: {version}")
    _git("tag", "--annotate", f"v{version}", "--message", f"GoQueue {version}")
    print(f"release: dist/{wheel.name} is built, v{version} is tagged. Push it with: git push --follow-tags")


def main(arguments: list[str]) -> int:
    try:
        release(arguments[0] if arguments else "")
    except NotReleased as reason:
        print(f"release: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
