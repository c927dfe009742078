"""Lanes: the five priorities that a record may have inside its partition. They order queue reads and nothing else."""

from enum import IntEnum


class Lane(IntEnum):
    CRITICAL = 0
    HIGH = 1
    NORMAL = 2
    LOW = 3
    BACKGROUND = 4


LANES = len(Lane)
