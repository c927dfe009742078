"""Which faults can be made here: not every machine has namespaces, disks of our own and strace."""

from tools.nemesis.disk_faults import disk_faults
from tools.nemesis.faults import CLUSTER, NETWORK, ONE_NODE, Fault
from tools.nemesis.town import Town


def possible(town: Town) -> dict[str, Fault]:
    found = CLUSTER if town.etcd else ONE_NODE
    if town.network:
        found = found | NETWORK
    return found | disk_faults(town)
