"""etcd, which keeps the metadata of a cluster and settles every dispute about it."""
