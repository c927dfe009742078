"""How much of a frame is read, kept and written at once, and what is none."""

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
