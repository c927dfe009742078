"""Settings by the names that Kafka has for them, since its tools ask for them; others begin with `goqueue.`."""

from collections.abc import Iterator, Mapping

from goqueue.broker.shown_settings import ShownSetting
from goqueue.model.kept_options import OptionType
from goqueue.node.settings import SPECS, Settings
from goqueue.node.values import Switch

KAFKA_NAMES: Mapping[str, str] = {
    "auto_create_topics": "auto.create.topics.enable",
    "data_dir": "log.dirs",
    "default_partitions": "num.partitions",
    "group_initial_rebalance_delay_ms": "group.initial.rebalance.delay.ms",
    "kafka": "listeners",
    "maintenance_interval_ms": "log.retention.check.interval.ms",
}
SHOWN_ELSEWHERE = frozenset(
    {
        "cleanup",
        "durability",
        "kafka_advertised",
        "node_id",
        "retention_bytes",
        "retention_ms",
        "segment_bytes",
        "segment_ms",
    }
)
"""As defaults of topics, or with the addresses that are known once the node listens."""


def shown_settings(settings: Settings) -> tuple[ShownSetting, ...]:
    return tuple(_all(settings))


def _all(settings: Settings) -> Iterator[ShownSetting]:
    defaults = Settings()
    for spec in SPECS:
        if spec.name in SHOWN_ELSEWHERE:
            continue
        value, default = getattr(settings, spec.name), getattr(defaults, spec.name)
        name = KAFKA_NAMES.get(spec.name) or f"goqueue.{spec.name.replace('_', '.')}"
        yield ShownSetting(name, _text(spec.name, value), _text(spec.name, default), spec.help, _type(value))


def _text(name: str, value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, Switch):
        return str(value is Switch.ON).lower()
    return f"PLAINTEXT://{value}" if name == "kafka" else str(value)


def _type(value: object) -> OptionType:
    if isinstance(value, Switch):
        return OptionType.BOOLEAN
    if isinstance(value, int):
        return OptionType.LONG
    return OptionType.DOUBLE if isinstance(value, float) else OptionType.STRING
