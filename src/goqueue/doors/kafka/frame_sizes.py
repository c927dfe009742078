"""How much of a frame is read, kept and written at once, and what is none."""

from goqueue.doors.kafka.surroundings import Limits

LENGTH_BYTES = 4
API_KEY_BYTES = 2
PRODUCE_KEY = b"\0\0"
RECEIVE_BYTES = 256 * 1024
HEAD_BYTES_MAX = RECEIVE_BYTES // 2
"""Frames up to this size are completed in the shared buffer: what has come of them is copied, at each read."""
JOIN_BYTES_MAX = 64 * 1024
"""Replies up to this size are joined into one write; larger ones are handed on piece by piece."""

REQUESTS_AHEAD = 5
"""Clients that care for the order of their requests have at most so many unanswered."""

FRAME_BYTES_FIRST = 1024 * 1024
"""Memory that a frame gets at first. It grows with what has come: four bytes must not cost their reader 100 MB."""


class BadFrame(Exception):
    """What came is not a Kafka request; the connection is closed."""


def may_be_large(length: int, data: memoryview, limits: Limits) -> bool:
    """False: not enough has come to tell. Nothing is kept of a frame that will not be taken."""
    start = bytes(data[: LENGTH_BYTES + API_KEY_BYTES])
    if start[:4] in (b"GET ", b"POST", b"PUT ", b"HEAD", b"DELE", b"OPTI"):
        raise BadFrame("HTTP was spoken to the Kafka port")
    if start[0] == 0x16 and start[1] == 0x03:
        raise BadFrame("TLS was spoken to the plain Kafka port")
    if not 0 < length <= limits.produce_bytes_max:
        raise BadFrame(f"a frame of {length} bytes; 1 to {limits.produce_bytes_max} are taken")
    if len(start) < LENGTH_BYTES + API_KEY_BYTES:
        return False
    if start[LENGTH_BYTES:] != PRODUCE_KEY:
        api_key = int.from_bytes(start[LENGTH_BYTES:], "big", signed=True)
        raise BadFrame(f"{length} bytes for API {api_key}; only Produce may have over {limits.frame_bytes_max}")
    return True
