"""Options that Spark's own source for Kafka takes and that say nothing here: a program that gives them runs as it is.

They are told at INFO. A few are refused, as they are there: who gives them expects what cannot be.
"""

import logging
from collections.abc import Iterable

_KAFKA = "kafka."
_OTHERS = frozenset({"kafkaconsumer.polltimeoutms", "fetchoffset.numretries", "fetchoffset.retryintervalms"})
_REFUSED = {
    "kafka.auto.offset.reset": "say startingOffsets",
    "kafka.enable.auto.commit": "the position is in Spark's checkpoint",
    "kafka.key.deserializer": "keys are bytes: cast the column",
    "kafka.value.deserializer": "values are bytes: cast the column, or say valueFormat",
    "kafka.key.serializer": "keys are bytes: cast the column",
    "kafka.value.serializer": "values are bytes: cast the column",
    "kafka.interceptor.classes": "they are programs for the JVM",
    "kafka.transactional.id": "a write makes its own: txnAppId names the writer",
}

_log = logging.getLogger("goqueue.spark")
_told: set[str] = set()
"""Spark uses its Python processes again: a process tells each once."""


def is_taken(name: str) -> bool:
    return name.lower().startswith(_KAFKA) or name.lower() in _OTHERS


def refused(name: str) -> list[str]:
    """What is wrong with it, if something is."""
    why = _REFUSED.get(name.lower())
    return [] if why is None else [f"{name} cannot be given: {why}"]


def tell(names: Iterable[str]) -> None:
    news = [name for name in names if name not in _told]
    if news:
        _told.update(news)
        _log.info("options that say nothing here: %s", ", ".join(sorted(news)))
