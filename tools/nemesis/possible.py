"""Which faults can be made here: not every machine has namespaces, disks of our own and strace."""

from tools.nemesis.disk_faults import disk_faults
from tools.nemesis.faults import CLUSTER, NETWORK, ONE_NODE, Fault
from tools.nemesis.town import Town


def possible(town: Town) -> tuple[dict[str, Fault], dict[str, str]]:
    """Those, and why others are left out."""
    found = CLUSTER if town.etcd else ONE_NODE
    missing: dict[str, str] = {}
    if town.network:
        found = found | NETWORK
        if not town.network.can_slow:
            del found["slow"]
            missing["slow"] = "tc makes no token buckets"
    elif town.etcd:
        missing |= dict.fromkeys(NETWORK, "nodes are on loopback addresses")
    disks, reasons = disk_faults(town)
    return found | disks, missing | reasons
