"""A whole cluster on this machine, to try things out: nodes and their etcd as processes of one command."""
