"""Why a measurement has no figures."""


class BenchFailed(Exception):
    """The load did not go through, so there is nothing to report; the message is for the person who asked."""
