"""A failure that cannot be had again is worth little: a seed gives one run, wherever objects lie in memory and however
names are hashed.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def digests(kind: str, seeds: str, hash_seed: int) -> str:
    ended = subprocess.run(
        [sys.executable, "-m", "tools.simulate", "--kind", kind, "--seeds", seeds, "--digests"],
        env=os.environ | {"PYTHONHASHSEED": str(hash_seed)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


CASES = [
    ("storms", "101", 1),
    pytest.param("storms", "102-103", 2, marks=pytest.mark.second_layer),
    pytest.param("cluster", "102-103", 2, marks=pytest.mark.second_layer),
]


@pytest.mark.parametrize(("kind", "seeds", "count"), CASES)
def test_the_same_seed_gives_the_same_bytes_at_the_same_times_under_any_hash_seed(
    kind: str, seeds: str, count: int
) -> None:
    first = digests(kind, seeds, 1)
    assert len(set(first.splitlines())) == count
    assert digests(kind, seeds, 2) == first
