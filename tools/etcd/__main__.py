"""`python -m tools.etcd`: build etcd, once, and print where it is."""

import sys

from tools.etcd.server import NotBuilt, build

try:
    print(build(say=lambda words: print(f"etcd: {words}", file=sys.stderr, flush=True)))
except NotBuilt as error:
    print(f"etcd: {error}", file=sys.stderr)
    sys.exit(1)
