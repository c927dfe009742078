"""What tests are made of, ours and our users': the ports of GoQueue without a machine behind them, and a broker on
them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from goqueue.testing.drive import PowerLost
from goqueue.testing.faults import Fault, Faults
from goqueue.testing.journal import SECTOR_BYTES
from goqueue.testing.memory_disk import MemoryDisk
from goqueue.testing.virtual_clock import VirtualClock

if TYPE_CHECKING:
    from goqueue.testing.broker_life import BrokerDown
    from goqueue.testing.memory_broker import MemoryBroker, broker
    from goqueue.testing.memory_cluster import Cluster, cluster
    from goqueue.testing.message import (
        DeadLetter,
        Lag,
        Message,
        ReceiptExpired,
        ReceiptRepeated,
        ReceiptUnknown,
        Record,
        Scheduled,
    )
    from goqueue.testing.simulation import Process, Simulation
    from goqueue.testing.virtual_etcd import EtcdWeather, LoopTime, VirtualEtcd
    from goqueue.testing.virtual_loop import Stuck, VirtualLoop
    from goqueue.testing.virtual_network import VirtualNetwork, Weather

__all__ = [
    "SECTOR_BYTES",
    "BrokerDown",
    "Cluster",
    "DeadLetter",
    "EtcdWeather",
    "Fault",
    "Faults",
    "Lag",
    "LoopTime",
    "MemoryBroker",
    "MemoryDisk",
    "Message",
    "PowerLost",
    "Process",
    "ReceiptExpired",
    "ReceiptRepeated",
    "ReceiptUnknown",
    "Record",
    "Scheduled",
    "Simulation",
    "Stuck",
    "VirtualClock",
    "VirtualEtcd",
    "VirtualLoop",
    "VirtualNetwork",
    "Weather",
    "broker",
    "cluster",
]

# Imported when first used: our pytest plugin is loaded by every run of pytest where GoQueue is installed, and most of
# them need no broker.
_HOMES = {
    "BrokerDown": "broker_life",
    "Cluster": "memory_cluster",
    "DeadLetter": "message",
    "EtcdWeather": "virtual_etcd",
    "Lag": "message",
    "LoopTime": "virtual_etcd",
    "MemoryBroker": "memory_broker",
    "Message": "message",
    "ReceiptExpired": "message",
    "ReceiptRepeated": "message",
    "ReceiptUnknown": "message",
    "Record": "message",
    "Scheduled": "message",
    "Process": "simulation",
    "Simulation": "simulation",
    "Stuck": "virtual_loop",
    "VirtualEtcd": "virtual_etcd",
    "VirtualLoop": "virtual_loop",
    "VirtualNetwork": "virtual_network",
    "Weather": "virtual_network",
    "broker": "memory_broker",
    "cluster": "memory_cluster",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
