"""A real etcd for tests, measurements and clusters on one machine, built from its sources and kept."""
