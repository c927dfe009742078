"""What a node's settings are, told to whoever asks the broker for them. They cannot be changed while it runs."""

from typing import NamedTuple

from goqueue.model.kept_options import OptionType


class ShownSetting(NamedTuple):
    name: str
    """Kafka's, where it has one."""
    value: str
    default: str
    words: str
    type: OptionType
