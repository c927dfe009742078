"""A cluster on this machine, to try things out."""

from goqueue.cli.table import Command, flag
from goqueue.cli.values import number

NODES_MAX = 50
"""Then ports of one kind meet those of the next."""

CLUSTER_DEV = (
    Command(
        "cluster dev",
        "start several nodes and an etcd on this machine, until Ctrl-C",
        "cluster_dev.dev",
        (
            flag("--nodes", metavar="N", kind=number(1, NODES_MAX), default=3, help="how many nodes (default 3)"),
            flag(
                "--data-dir",
                metavar="PATH",
                default="data/cluster",
                help="where nodes, etcd and their logs have directories (default data/cluster)",
            ),
            flag("--host", metavar="HOST", default="127.0.0.1", help="address of this machine (default 127.0.0.1)"),
            flag("--ready-file", metavar="FILE", help="written when all nodes serve: addresses and pids, as JSON"),
            flag("--restart", help="start a process again that has ended"),
            flag("--etcd-binary", metavar="PATH", help="the etcd program (default: PATH, or what make etcd has built)"),
        ),
        about=(
            "To try things out: the first node is at the usual ports, the second one port further, and so on. For real"
            " ones see docs/cluster.md."
        ),
        examples=("goqueue cluster dev", "goqueue cluster dev --nodes 5 --data-dir data/five --restart"),
        outputs=(),
        is_remote=False,
        needs_loop=True,
    ),
)
