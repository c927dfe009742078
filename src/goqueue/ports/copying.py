"""What the replication of a node tells of itself to whoever shows it: the broker does not know the cluster's code."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Copying(NamedTuple):
    fetches: int = 0
    """Requests to leaders for what comes next."""
    failures: int = 0
    """Those without an answer, or with one that could not be used."""
    copied_bytes: int = 0
    """Batches that were copied from leaders."""
    lags: Mapping[int, int] = MappingProxyType({})
    """Of what this node leads, by follower: the records that its copy lacks of the partition where it lacks most."""
