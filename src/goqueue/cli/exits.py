"""How a command ends: its exit codes, and a last word on stderr."""

import sys

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143


def complain(text: str, code: int) -> int:
    print(text, file=sys.stderr)
    return code
