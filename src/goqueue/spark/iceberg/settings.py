"""What the options of a topic say about its table."""

import re
from dataclasses import replace
from typing import NamedTuple

from goqueue.model.table_options import DEFAULT, KEY, NONE, Part, parse_partition
from goqueue.model.topics import DEFAULTS, OPTION_NAMES, TopicOptions, parse_option
from goqueue.wire.rest.topics import TopicDetails

NAMESPACE = "goqueue"
DEAD_LETTERS = "_dead_letters"
APPEND, UPSERT = "append", "upsert"
_BY_DAY = (Part("day", "_timestamp"),)
_BY_KEY = (Part("bucket[16]", KEY),)


class TableSettings(NamedTuple):
    """Two that are equal mean the same table, kept in the same way."""

    topic: str
    topic_id: str
    mode: str
    is_typed: bool
    """The columns are those of the schema in the registry."""
    subject: str | None
    """Of that schema; None: by the topic's name."""
    partition: tuple[Part, ...]
    freshness_ms: int
    retention_ms: int
    catalog: str

    @property
    def name(self) -> str:
        """Of the table. What SQL would have to quote is an underscore in it."""
        return re.sub(r"\W", "_", self.topic, flags=re.ASCII)


def settings_of(details: TopicDetails) -> TableSettings | None:
    """None: the topic is no table."""
    said = {
        OPTION_NAMES[name]: parse_option(name, text) for name, text in details.options.items() if name in OPTION_NAMES
    }
    options: TopicOptions = replace(DEFAULTS, **said)  # type: ignore[arg-type]  # parse_option gives each field's type
    if options.table == "none":
        return None
    subject = options.schema_subject.replace("{topic}", details.name) if "schema_subject" in said else None
    return TableSettings(
        details.name,
        details.id,
        options.table_mode,
        options.table_schema == "registry",
        subject,
        _parts(options),
        options.table_freshness_ms,
        options.table_retention_ms,
        options.table_catalog,
    )


def _parts(options: TopicOptions) -> tuple[Part, ...]:
    if options.table_partition == NONE:
        return ()
    if options.table_partition == DEFAULT:
        return _BY_KEY if options.table_mode == UPSERT else _BY_DAY
    return parse_partition("table.partition", options.table_partition)
