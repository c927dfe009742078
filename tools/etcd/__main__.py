"""`python -m tools.etcd`: build etcd, once, and print where it is."""

import sys

from tools.etcd.server import ETCD
from tools.golang import NotBuilt

try:
    print(ETCD.build(say=lambda words: print(f"etcd: {words}", file=sys.stderr, flush=True)))
except NotBuilt as error:
    print(f"etcd: {error}", file=sys.stderr)
    sys.exit(1)
