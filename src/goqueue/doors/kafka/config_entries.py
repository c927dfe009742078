"""One option of a resource as DescribeConfigs shows it: its value, where that comes from, and what lies behind it."""

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple

from goqueue.doors.kafka.request import Request
from goqueue.model.kept_options import OptionType
from goqueue.wire.kafka.messages.configs import (
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsSynonym,
)

TOPIC_RESOURCE, BROKER_RESOURCE, LOGGER_RESOURCE, METRICS_RESOURCE, GROUP_RESOURCE = 2, 4, 8, 16, 32


class Source(IntEnum):
    """Who chose a value, as the protocol numbers them."""

    TOPIC = 1
    STATIC_BROKER = 4
    DEFAULT = 5
    LOGGER = 6
    GROUP = 8


class Chosen(NamedTuple):
    """A value that somebody chose, and the name under which they did."""

    name: str
    value: str
    source: Source


class Option(NamedTuple):
    name: str
    type: OptionType
    chosen: Sequence[Chosen]
    """What holds first, then what would hold without it, down to the default."""
    words: str = ""
    is_read_only: bool = False


class Asked:
    """What a client wants to know of one resource."""

    def __init__(self, request: Request, resource: DescribeConfigsResource) -> None:
        self._names = set(resource.configuration_keys) if resource.configuration_keys else None
        self._wants_synonyms: bool = request.message.include_synonyms
        self._wants_words: bool = request.message.include_documentation

    def show(self, options: Iterable[Option]) -> list[DescribeConfigsResourceResult]:
        return [self._entry(one) for one in options if self._names is None or one.name in self._names]

    def _entry(self, option: Option) -> DescribeConfigsResourceResult:
        holds = option.chosen[0]
        return DescribeConfigsResourceResult(
            option.name,
            holds.value,
            read_only=option.is_read_only,
            config_source=holds.source,
            synonyms=[DescribeConfigsSynonym(*one) for one in option.chosen] if self._wants_synonyms else [],
            config_type=option.type,
            documentation=option.words if self._wants_words else None,
        )
