"""The master key: a file that is not where the data is, so that whoever steals one has not the other."""

import stat
from pathlib import Path

from goqueue.broker.accounts.sealing import MASTER_BYTES
from goqueue.model.errors import InvalidSettings
from goqueue.model.secret import Secret

OTHERS = stat.S_IRWXG | stat.S_IRWXO


def read_master_keys(path: Path, data_dir: Path) -> list[Secret[bytes]]:
    """The first is the one in use; others are those before it. InvalidSettings: it cannot be used, and why."""
    try:
        real, mode = path.resolve(strict=True), path.stat().st_mode
        lines = path.read_text("ascii").split()
    except (OSError, UnicodeDecodeError) as error:
        raise _refusal(path, getattr(error, "strerror", None) or "it is not in hex") from None
    if real.is_relative_to(data_dir.resolve()):
        raise _refusal(path, "it lies inside data_dir, so whoever steals the data has it too")
    if mode & OTHERS:
        raise _refusal(path, f"others may read it; mend it with: chmod 600 {path}")
    try:
        keys = [bytes.fromhex(each) for each in lines]
    except ValueError:
        keys = []
    if not keys or any(len(each) != MASTER_BYTES for each in keys):
        raise _refusal(path, f"each line has to be {MASTER_BYTES} bytes in hex; make one with: openssl rand -hex 32")
    return [Secret(each) for each in keys]


def _refusal(path: Path, why: str) -> InvalidSettings:
    return InvalidSettings(f"master_key_file = {path}: {why}")
