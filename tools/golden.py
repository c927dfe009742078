"""`python -m tools.golden` adds what this version stores to tests/golden/stored.jsonl. It changes no line that is
there: those are what earlier versions wrote, and what every later one has to read.
"""

import sys

from tests.golden.lines import NotGolden, add_lines


def main() -> int:
    try:
        added = add_lines()
    except NotGolden as reason:
        print(f"golden: nothing was added. See CONTRIBUTING.md, Stored facts.\n{reason}", file=sys.stderr)
        return 1
    for line in added:
        print(f"golden: {line.kind} {line.tag} in format {line.version}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
