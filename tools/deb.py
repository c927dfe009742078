"""A Debian package of one node: `python -m tools.deb` writes dist/goqueue_VERSION_ARCHITECTURE.deb.

An environment of Python belongs to one version of it, so the package depends on that one: build it on the release of
Debian that it is for. Nothing is fetched when it is installed.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from tools.image import ROOT, fill

PARTS = ROOT / "deploy" / "debian"
SCRIPTS = ("postinst", "prerm", "postrm")
HOME = "opt/goqueue"
CONFIGURATION = "etc/goqueue/goqueue.toml"


def build(target: Path, python: str = "/usr/bin/python3") -> Path:
    """With the Python of the system, whose version the package is for."""
    asked = subprocess.run([python, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, check=True)
    major, minor = asked.stdout.decode().split()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory, "root")
        wheels = fill(Path(directory, "wheels"), f"{major}.{minor}")
        _install(root, python, wheels)
        _place(root)
        control = _control(root, version, major, int(minor))
        (root / "DEBIAN").mkdir()
        (root / "DEBIAN" / "control").write_text(control, "utf-8")
        (root / "DEBIAN" / "conffiles").write_text(f"/{CONFIGURATION}\n", "utf-8")
        for name in SCRIPTS:
            shutil.copy(PARTS / name, root / "DEBIAN" / name)
        target.mkdir(exist_ok=True, parents=True)
        made = target / f"goqueue_{version}_{_architecture()}.deb"
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "--build", root, made], check=True)
    return made


def _install(root: Path, python: str, wheels: Path) -> None:
    """Into the place below `root` where it will be."""
    home = root / HOME
    subprocess.run([python, "-m", "venv", "--without-pip", home], check=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--python", f"{home}/bin/python3"]
    install = ["install", "--no-index", "--no-deps", "--no-compile", *sorted(map(str, wheels.glob("*.whl")))]
    subprocess.run([*pip, *install], check=True)
    for script in (home / "bin").iterdir():
        if script.is_file() and not script.is_symlink():
            script.write_bytes(script.read_bytes().replace(str(root).encode(), b""))
    about = home / "pyvenv.cfg"
    about.write_text(about.read_text("utf-8").replace(str(root), ""), "utf-8")
    for cache in home.rglob("__pycache__"):
        shutil.rmtree(cache)


def _place(root: Path) -> None:
    for source, place in {
        ROOT / "deploy" / "systemd" / "goqueue.service": "usr/lib/systemd/system/goqueue.service",
        PARTS / "goqueue.toml": CONFIGURATION,
        ROOT / "LICENSE": "usr/share/doc/goqueue/copyright",
        ROOT / "README.md": "usr/share/doc/goqueue/README.md",
    }.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, root / place)
        (root / place).chmod(0o644)
    (root / "usr" / "bin").mkdir(parents=True)
    (root / "usr" / "bin" / "goqueue").symlink_to(f"/{HOME}/bin/goqueue")


def _control(root: Path, version: str, major: str, minor: int) -> str:
    text = (PARTS / "control").read_text("utf-8")
    kilobytes = sum(each.stat().st_size for each in root.rglob("*") if each.is_file() and not each.is_symlink()) // 1024
    for name, value in {
        "version": version,
        "architecture": _architecture(),
        "python": "python3",
        "from": f"{major}.{minor}",
        "below": f"{major}.{minor + 1}",
        "kilobytes": str(kilobytes),
    }.items():
        text = text.replace(f"@{name}@", value)
    return text


def _architecture() -> str:
    asked = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True)
    return asked.stdout.strip()


if __name__ == "__main__":
    os.umask(0o022)
    print(build(ROOT / "dist"))
