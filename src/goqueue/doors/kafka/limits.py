"""How much Kafka clients may send, keep waiting and hold open; and how much those who have not shown who they are."""

from dataclasses import dataclass

STRANGER_BYTES_MAX = 64 * 1024


@dataclass
class KafkaLimits:
    frame_bytes_max: int = 8 * 1024 * 1024
    produce_bytes_max: int = 100 * 1024 * 1024
    pending_max: int = 200
    pending_bytes_max: int = 8 * 1024 * 1024
    waiting_bytes_max: int = 256 * 1024 * 1024
    """Likewise of all connections together. They cannot just be read later: a member that has joined waits for others,
    whose requests have yet to come."""
    gather_ms: int = 1
    frame_ms_max: int = 60_000
    write_ms_max: int = 60_000
    drain_ms_max: int = 2_000
    """How long a node that stops waits for its clients to take their last replies."""
    connections_max: int = 20_000
    session_ms_max: int = 0
    """How long a login is good for, whatever was shown (KIP-368); 0: for as long as that is."""
    age_ms_max: int = 0
    """Older connections are closed, once all is answered that they have asked for; 0: none is."""


STRANGER_LIMITS = KafkaLimits(frame_bytes_max=STRANGER_BYTES_MAX, produce_bytes_max=STRANGER_BYTES_MAX)
