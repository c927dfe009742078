"""What tests are made of, ours and our users': the ports of GoQueue without a machine behind them."""

from goqueue.testing.drive import PowerLost
from goqueue.testing.faults import Fault, Faults
from goqueue.testing.journal import SECTOR_BYTES
from goqueue.testing.memory_disk import MemoryDisk
from goqueue.testing.virtual_clock import VirtualClock

__all__ = ["SECTOR_BYTES", "Fault", "Faults", "MemoryDisk", "PowerLost", "VirtualClock"]
