"""A failure that cannot be had again is worth little: a seed gives one run, wherever objects lie in memory and however
names are hashed.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def digests(seeds: str, hash_seed: int) -> str:
    ended = subprocess.run(
        [sys.executable, "-m", "tools.simulate", "--seeds", seeds, "--digests"],
        env=os.environ | {"PYTHONHASHSEED": str(hash_seed)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_the_same_seed_gives_the_same_bytes_at_the_same_times_under_any_hash_seed() -> None:
    first = digests("101-103", 1)
    assert len(set(first.splitlines())) == 3
    assert digests("101-103", 2) == first
