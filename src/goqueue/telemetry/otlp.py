"""What spans and metrics that go to a collector have in common. Imported only where one of them is switched on."""

import logging
from collections.abc import Mapping

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

SCOPE = InstrumentationScope("goqueue")
TIMEOUT_S = 5.0
MS_NS = 1_000_000
NOT_TAKEN = "the collector did not take them"


def resource(about: Mapping[str, str]) -> Resource:
    """`about` says who we are."""
    # What goes wrong is told once, by whoever exports, and not by every retry.
    logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
    logging.getLogger("opentelemetry").propagate = False
    return Resource.create({"service.name": "goqueue", **about})
