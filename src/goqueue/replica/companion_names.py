"""What the companions of a partition are called, on this node's disk and by other nodes."""

from hashlib import sha256
from typing import NamedTuple

from goqueue.model.names import LEDGER_PREFIX

KINDS = ("deliveries", "delays")
FOLLOWING = ("deliveries",)
"""Those that have the durability of their topic. Delays are always on the disk: see ADR 0040."""
ID_BYTES = 16


class CompanionName(NamedTuple):
    kind: str
    """One of KINDS."""
    topic_id: bytes
    """Of the partition's topic."""
    partition: int

    @property
    def log(self) -> str:
        return f"{LEDGER_PREFIX}{self.kind}.{self.topic_id.hex()}"

    @property
    def id(self) -> bytes:
        """By which nodes name it to each other, in the place of a topic's id."""
        return sha256(b"companion " + self.kind.encode() + b" " + self.topic_id).digest()[:ID_BYTES]

    @classmethod
    def parse(cls, log: str, partition: int) -> "CompanionName | None":
        """None: the log is of another kind."""
        kind, _, text = log.removeprefix(LEDGER_PREFIX).partition(".")
        topic_id = _topic_id(text) if log.startswith(LEDGER_PREFIX) and kind in KINDS else None
        return None if topic_id is None else cls(kind, topic_id, partition)


def _topic_id(text: str) -> bytes | None:
    try:
        topic_id = bytes.fromhex(text)
    except ValueError:
        return None
    return topic_id if len(topic_id) == ID_BYTES and topic_id.hex() == text else None
