"""What the options of a topic and of a group come to, for deliveries in one place."""

from collections.abc import Mapping
from dataclasses import replace

from goqueue.machines.deliveries.commands import Policy
from goqueue.model.group_options import SHARED_WITH_TOPICS
from goqueue.model.topics import OPTION_NAMES, TopicOptions, parse_option


def policy_of(topic: TopicOptions, group: Mapping[str, str]) -> Policy:
    changes = {
        OPTION_NAMES[name]: parse_option(name, text) for name, text in group.items() if name in SHARED_WITH_TOPICS
    }
    options = replace(topic, **changes)  # type: ignore[arg-type]  # parse_option gives each field's type
    first, second, third, fourth, fifth = (int(part) for part in options.lane_weights.split(","))
    return Policy(
        lease_ms=options.lease_ms,
        attempts_max=options.attempts_max,
        unacked_max=options.unacked_max,
        backoff_ms=options.retry_backoff_ms,
        backoff_ms_max=options.retry_backoff_max_ms,
        orders_by_key=options.lease_order == "key",
        keeps_expired=options.expired_messages == "dead-letter",
        lane_weights=(first, second, third, fourth, fifth),
        lane_boost_ms=options.lane_boost_ms,
        fair_by=options.fair_by,
    )
