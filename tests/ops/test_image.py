"""The image and the Debian package, built as a release builds them, and run."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from goqueue.client.sync import Admin
from tests.integration.process import own_host, wait_until
from tests.ops.behaviours import ROOT
from tools.deb import build
from tools.image import bill_of_materials, fill

pytestmark = pytest.mark.image

BASE = "localhost/goqueue-tests/base"
IMAGE = "localhost/goqueue-tests/goqueue"
RELEASE, PYTHON = "trixie", "3.13"
MEGABYTES_MAX = 250
BUILD_S_MAX = 900
UNSAFE = "--dpkgopt=force-unsafe-io"
"""What is built is thrown away: it need not reach the disk."""
RUN_S_MAX = 120
LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*")
PODMAN = ["podman", "--runtime", "runc", "--cgroup-manager", "cgroupfs"]
LIMITS = ["--ulimit", "nofile=8192:8192", "--ulimit", "nproc=1000:1000"]
"""Where a host may not raise limits, those of a container have to be within its own."""


def run(*command: str | Path, within_s: float = BUILD_S_MAX, cwd: Path = ROOT) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=within_s, check=False)
    assert done.returncode == 0, f"{command}:\n{(done.stdout + done.stderr)[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> str:
    """On a Debian that was made here, so that no registry is asked."""
    place = tmp_path_factory.mktemp("image")
    packages = "--include=python3,python3-venv,ca-certificates"
    options = [f"--dpkgopt=path-exclude={each}" for each in LEFT_OUT]
    run("mmdebstrap", "--variant=minbase", packages, *options, UNSAFE, RELEASE, place / "base.tar")
    run("podman", "import", place / "base.tar", BASE)
    (place / "base.tar").unlink()
    fill(place / "build" / "wheels", PYTHON)
    shutil.copy(ROOT / "Dockerfile", place)
    isolation = ["--isolation", "chroot", "--network", "host", "--pull-never", "--format", "docker"]
    run("buildah", "bud", *isolation, "--build-arg", f"BASE={BASE}", "-t", IMAGE, place)
    names = {part["name"] for part in bill_of_materials(place / "build" / "wheels")["components"]}  # type: ignore[attr-defined]
    assert {"goqueue", "uvicorn", "grpcio"} <= names
    return IMAGE


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "volume"
    place.mkdir()
    os.chown(place, 10001, 10001)
    yield place
    subprocess.run([*PODMAN, "rm", "--force", "--ignore", "goqueue-test"], check=False, capture_output=True)


def test_a_container_keeps_what_it_acknowledged(image: str, volume: Path) -> None:
    (about,) = json.loads(run("podman", "image", "inspect", image))
    assert about["Size"] <= MEGABYTES_MAX * 1_000_000
    assert about["User"] == "10001:10001"
    host = own_host()
    start = [*PODMAN, "run", "--detach", "--name", "goqueue-test", "--network", "host", *LIMITS, "--memory", "512m"]
    start += ["--read-only", "--tmpfs", "/tmp", "--cap-drop", "all", "--volume", f"{volume}:/var/lib/goqueue", image]
    addresses = [f"--{api}={host}:{port}" for api, port in {"kafka": 9092, "http": 8080, "grpc": 9000}.items()]
    run(*start, "serve", "--dev", "--data-dir", "/var/lib/goqueue/data", *addresses, within_s=RUN_S_MAX)
    with Admin(f"http://{host}:8080") as admin:
        wait_until(lambda: is_up(admin), "the start of the container")
        admin.create_topic("orders")
        admin.publish("orders", [{"value": "kept"}])
        run(*PODMAN, "kill", "--signal", "KILL", "goqueue-test", within_s=RUN_S_MAX)
        run(*PODMAN, "start", "goqueue-test", within_s=RUN_S_MAX)
        wait_until(lambda: is_up(admin), "the second start of the container")
        assert [message.value for message in admin.receive("orders", "packers", wait_ms=5000)] == ["kept"]
    run(*PODMAN, "stop", "--time", "30", "goqueue-test", within_s=RUN_S_MAX)
    (ended,) = json.loads(run(*PODMAN, "inspect", "goqueue-test"))
    assert ended["State"]["ExitCode"] == 0


def is_up(admin: Admin) -> bool:
    try:
        return bool(admin.is_ready())
    except Exception:  # noqa: BLE001  it is not there yet
        return False


def test_the_unit_is_sound_and_hardened(tmp_path: Path) -> None:
    unit = tmp_path / "goqueue.service"
    text = (ROOT / "deploy" / "systemd" / "goqueue.service").read_text("utf-8")
    program = tmp_path / "goqueue"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit.write_text(text.replace("/usr/bin/goqueue", str(program)))
    assert run("systemd-analyze", "verify", "--man=no", unit) == ""
    run("systemd-analyze", "security", "--offline=true", "--threshold=20", unit)


def test_the_debian_package_runs_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """On a machine that has nothing but Python: a directory, with the release of Debian that this one has."""
    package = build(tmp_path)
    listed = run("dpkg-deb", "--contents", package)
    assert re.search(r"\./usr/bin/goqueue -> /opt/goqueue/bin/goqueue", listed)
    assert "__pycache__" not in listed
    machine = tmp_path / "machine"
    release = run("sh", "-c", ". /etc/os-release && echo $VERSION_CODENAME").strip()
    run("mmdebstrap", "--variant=minbase", "--include=python3", UNSAFE, release, machine)
    shutil.copy(package, machine / "goqueue.deb")
    run("chroot", machine, "dpkg", "--install", "/goqueue.deb")
    assert run("chroot", machine, "/usr/bin/goqueue", "version", "-o", "json").strip()
    assert (machine / "etc/goqueue/goqueue.toml").is_file()
    assert any((machine / "opt/goqueue").rglob("__pycache__"))
    assert str(tmp_path) not in (machine / "opt/goqueue/bin/goqueue").read_text()
    run("chroot", machine, "dpkg", "--purge", "goqueue")
    assert not (machine / "opt/goqueue").exists()
    assert not (machine / "usr/bin/goqueue").is_symlink()
    shutil.rmtree(machine)
