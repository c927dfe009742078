"""The etcd server of this folder's go.mod. Old ones lose data: 3.5.28 and 3.6.9 are the first that a node accepts."""

from pathlib import Path

from tools.golang import GoProgram

ETCD = GoProgram("etcd", Path(__file__).parent, "go.etcd.io/etcd/server/v3")
