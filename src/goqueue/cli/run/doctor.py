"""`goqueue doctor`: what would hurt a node on this machine, and what to do about it. It changes nothing."""

import ctypes
import os
import resource
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from goqueue.cli.bench.filesystem import IN_MEMORY, filesystem_of
from goqueue.cli.call import Call
from goqueue.cli.exits import EXIT_FAILED
from goqueue.cli.output import Column, size
from goqueue.client import ClientError, HttpRefused
from goqueue.model.moments import parse_absolute_ms

OK, WARN, FAIL = "ok", "warn", "fail"
REMOTE = frozenset({"nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs"})
FREE_SHARE_MIN, FREE_SHARE_GOOD = 0.02, 0.10
FREE_BYTES_MIN = 256 * 1024 * 1024
INODES_SHARE_MIN = 0.02
SYNC_MS_GOOD = 50
FILES_GOOD = 65_536
FILES_MIN = 1024
CLOCK_MS_GOOD = 1000
CLOCK_MS_MIN = 1_767_225_600_000
"""2026: no clock is right that says less."""
UNSYNCHRONISED = 5
FAULTS_SHOWN_MAX = 10
TIMEX_BYTES = 1024


class Finding(NamedTuple):
    check: str
    state: str
    found: str
    advice: str = ""


async def doctor(call: Call) -> int:
    directory = Path(call.given.data_dir)
    findings = [*look_at_directory(directory), *look_at_disk(_nearest(directory)), look_at_limits(), look_at_clock()]
    findings += look_at_logs(directory)
    findings += await _ask(call)
    if call.given.security:
        from goqueue.cli.run.doctor_security import look_at_security

        findings += await look_at_security(call)
    columns = (
        Column("CHECK", lambda each: each["check"]),
        Column("STATE", lambda each: each["state"]),
        Column("FOUND", lambda each: each["found"]),
        Column("WHAT TO DO", lambda each: each["advice"]),
    )
    call.out.rows([each._asdict() for each in findings], columns)
    return EXIT_FAILED if any(each.state == FAIL for each in findings) else 0


def _nearest(directory: Path) -> Path:
    """Where it would be made."""
    directory = directory.absolute()
    while not directory.exists():
        directory = directory.parent
    return directory


def look_at_directory(directory: Path) -> Iterator[Finding]:
    check = "data directory"
    if not directory.exists():
        parent = _nearest(directory)
        if os.access(parent, os.W_OK | os.X_OK):
            yield Finding(check, OK, f"{directory} is not there yet; a node would make it")
        else:
            advice = f"make it with: sudo install -d -o $(id -un) {directory.absolute()}"
            yield Finding(check, FAIL, f"{directory} is not there, and {parent} cannot be written to", advice)
        return
    if not directory.is_dir():
        yield Finding(check, FAIL, f"{directory} is no directory", "choose another one with --data-dir")
        return
    found = directory.stat()
    if not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        advice = f"run as its owner, or give it to you: sudo chown -R $(id -un) {directory.absolute()}"
        yield Finding(check, FAIL, f"{directory} cannot be read and written by you", advice)
        return
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        yield Finding(check, WARN, f"others may write to {directory}", f"mend it with: chmod go-w {directory}")
    else:
        yield Finding(check, OK, f"{directory} can be read and written")
    yield Finding("in use", OK, "a node runs on it" if _is_locked(directory / "lock") else "no node runs on it")


def look_at_logs(directory: Path) -> Iterator[Finding]:
    """Of a node that does not run: one that does tells by its health, and changes its files meanwhile."""
    if not (directory / "logs").is_dir() or not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        return
    if _is_locked(directory / "lock"):
        return

    from goqueue.node.offline import look_at_logs as look

    looked = look(directory)
    if looked.newer:
        yield Finding("format", FAIL, looked.newer, "use the version that wrote it, or a later one")
        return
    if looked.metadata:
        advice = f"restore a backup, or see: goqueue repair --data-dir {directory} --dry-run"
        yield Finding("metadata", FAIL, looked.metadata, advice)
    for fault in looked.faults[:FAULTS_SHOWN_MAX]:
        yield Finding("logs", WARN, f"{fault.log}: {fault.words}", "restore them from a backup, if they are needed")
    if len(looked.faults) > FAULTS_SHOWN_MAX:
        yield Finding("logs", WARN, f"and {len(looked.faults) - FAULTS_SHOWN_MAX} more logs")
    if not looked.faults and not looked.metadata:
        yield Finding("logs", OK, f"{looked.logs} logs, nothing is missing")


def _is_locked(file: Path) -> bool:
    """Without touching the lock, which a node that starts just now may want."""
    try:
        inode = str(file.stat().st_ino)
        lines = Path("/proc/locks").read_text("utf-8").splitlines()
    except OSError:
        return False
    return any(field.rpartition(":")[2] == inode for line in lines for field in line.split() if field.count(":") == 2)


def look_at_disk(directory: Path) -> Iterator[Finding]:
    kind = filesystem_of(directory)
    if kind in IN_MEMORY:
        yield Finding("filesystem", WARN, f"{kind}: all is gone after a restart of the machine", "use a real disk")
    elif kind in REMOTE:
        yield Finding("filesystem", WARN, f"{kind}: syncs may not be what they seem", "use a local disk")
    else:
        yield Finding("filesystem", OK, kind)
    usage = shutil.disk_usage(directory)
    words = f"{size(usage.free)} of {size(usage.total)} are free"
    if usage.free < max(FREE_BYTES_MIN, usage.total * FREE_SHARE_MIN):
        yield Finding(
            "disk space", FAIL, words, "make room: lower retention with goqueue topic alter, or grow the disk"
        )
    elif usage.free < usage.total * FREE_SHARE_GOOD:
        yield Finding("disk space", WARN, words, "make room soon: lower retention, or grow the disk")
    else:
        yield Finding("disk space", OK, words)
    inodes = os.statvfs(directory)
    if inodes.f_files and inodes.f_favail < inodes.f_files * INODES_SHARE_MIN:
        yield Finding("inodes", FAIL, f"{inodes.f_favail} of {inodes.f_files} are free", "delete small files there")
    if os.access(directory, os.W_OK):
        yield _look_at_syncs(directory)


def _look_at_syncs(directory: Path) -> Finding:
    try:
        with tempfile.TemporaryFile(dir=directory) as file:  # it has no name, so that no node can stumble over it
            file.write(b"goqueue" * 512)
            file.flush()
            before = time.monotonic()
            os.fsync(file.fileno())
            took_ms = (time.monotonic() - before) * 1000
    except OSError as error:
        return Finding("sync", FAIL, f"cannot write and sync: {error.strerror}", "look after this disk")
    words = f"a sync takes {took_ms:.1f} ms"
    if took_ms > SYNC_MS_GOOD:
        return Finding("sync", WARN, words, "expect slow publishing with durability disk; use a faster disk")
    return Finding("sync", OK, words)


def look_at_limits() -> Finding:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = hard == resource.RLIM_INFINITY
    words = "open files: no limit" if unlimited else f"open files: at most {hard:,}"
    if unlimited or hard >= FILES_GOOD:
        return Finding("limits", OK, words)
    advice = f"raise it to {FILES_GOOD}: ulimit -Hn, or LimitNOFILE= in the systemd unit"
    return Finding("limits", WARN if hard >= FILES_MIN else FAIL, words, advice)


def look_at_clock() -> Finding:
    now_ms = time.time_ns() // 1_000_000
    if now_ms < CLOCK_MS_MIN:
        return Finding("clock", FAIL, "the clock of this machine is years behind", "set it, and run chrony or ntpd")
    try:
        state = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(TIMEX_BYTES))
    except (AttributeError, OSError):  # not Linux
        return Finding("clock", OK, "seems right")
    if state == UNSYNCHRONISED:
        advice = "run chrony or systemd-timesyncd: delays, retention and leases go by this clock"
        return Finding("clock", WARN, "nobody keeps it right", advice)
    return Finding("clock", OK, "seems right" if state < 0 else "is kept right")


async def _ask(call: Call) -> list[Finding]:
    server = call.target.server
    try:
        before_ms = time.time_ns() // 1_000_000
        probe = await call.admin.is_ready()
        after_ms = time.time_ns() // 1_000_000
    except HttpRefused as error:
        return [Finding("server", FAIL, f"{server} is not ready: {error}", "GET /readyz?verbose=true tells each check")]
    except ClientError as error:
        advice = "start one with goqueue serve, or say where it is with --server"
        return [Finding("server", WARN, f"{server}: {error}", advice)]
    told_ms = parse_absolute_ms(probe.timestamp) or 0
    apart_ms = max(before_ms - told_ms, told_ms - after_ms, 0)
    state = {"pass": OK, "warn": WARN}.get(probe.status, FAIL)
    why = f"; {probe.message}" if isinstance(probe.message, str) else ""
    found = [Finding("server", state, f"{server} answers, up for {probe.uptime}{why}")]
    if apart_ms > CLOCK_MS_GOOD:
        advice = "keep both clocks right with chrony or ntpd"
        found.append(Finding("server clock", WARN, f"{apart_ms / 1000:.1f} s apart from the one here", advice))
    else:
        found.append(Finding("server clock", OK, "agrees with the one here"))
    return found
