"""Memory of large requests is used again, and not taken from the system for each of them."""

import subprocess
import sys

TAKE_AND_FREE = """
import resource
from goqueue.node.freed_memory import keep_freed_memory
assert not {is_kept} or keep_freed_memory()
def once():
    taken = [bytearray(1024 * 1024) for _ in range(8)]
for _ in range(3):
    once()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    once()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(is_kept: bool) -> int:
    said = subprocess.run(
        [sys.executable, "-c", TAKE_AND_FREE.format(is_kept=is_kept)], capture_output=True, text=True, check=True
    )
    return int(said.stdout)


def test_memory_that_was_freed_is_used_again() -> None:
    assert page_faults(is_kept=True) * 10 < page_faults(is_kept=False)
