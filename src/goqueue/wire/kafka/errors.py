"""The one error that foreign bytes can cause here."""

from goqueue.model.errors import GoQueueError


class MalformedRequest(GoQueueError):
    """Bytes that are not the message they claim to be. Where they stop making sense cannot be told from what they are,
    so the connection that they came from is of no further use."""


class TooManyEntries(MalformedRequest):
    """A request that asks for more at once than is answered. Its bytes were not all read; the next request is where it
    should be."""
