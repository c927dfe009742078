"""What the pages at /console/ are good for on a node."""

from enum import StrEnum


class Console(StrEnum):
    ON = "on"
    READ_ONLY = "read-only"
    """It shows everything, and no page of this node changes anything."""
    OFF = "off"
