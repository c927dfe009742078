"""Which methods of the broker's services the APIs may use, by the attributes of `Broker`. Methods whose parameters say
what they name need not stand here.
"""

from collections.abc import Mapping

from goqueue.broker.view.ports import Rules, names_of, one_of, pages_of, place_of, seen_of
from goqueue.model.access import Kind

TOPIC, GROUP, TRANSACTIONAL_ID, SUBJECT = Kind.TOPIC, Kind.GROUP, Kind.TRANSACTIONAL_ID, Kind.SUBJECT
CLUSTER = Kind.CLUSTER

OF_NODE = frozenset(
    {"identity", "clock", "dice", "health", "durable", "default_partitions", "creates_topics", "settings"}
)
"""What no name belongs to."""

_GROUPS = Rules(
    free=frozenset({"new_member_id", "partitions"}),
    pages={"page": GROUP},
    words={"listed": {"names": "group_ids"}},
)
_TRANSACTIONS = Rules(
    free=frozenset({"ids", "is_active"}),
    whole={"committed": TRANSACTIONAL_ID, "aborted": TRANSACTIONAL_ID},
    lists={"of_producer": one_of(TRANSACTIONAL_ID, "transactional_id")},
    parts={"enlisting": Rules()},
)

RULES: Mapping[str, Rules] = {
    "topics": Rules(free=frozenset({"defaults", "new_id", "on_change", "partitioner"})),
    "publisher": Rules(
        free=frozenset(
            {"acknowledgements", "admit_plain", "append", "misses_first", "now_s", "refused", "sees_no_wishes", "turns"}
        ),
    ),
    "fetcher": Rules(claims={"fetch": (TOPIC,)}),
    "groups": _GROUPS,
    "lag": Rules(),
    "transactions": _TRANSACTIONS,
    "queues": Rules(
        pages={"page": GROUP, "page_with_options": GROUP},
        lists={"groups": names_of(GROUP)},
        whole={"held": GROUP, "tally": GROUP, "measured": GROUP, "readers_by_partition": GROUP},
    ),
    "receiver": Rules(claims={"receive": (TOPIC, GROUP)}),
    "settler": Rules(
        free=frozenset({"spread"}),
        lists={"lease_of": place_of, "place_of": place_of},
        claims={"settle": (TOPIC, GROUP), "settle_one": (TOPIC, GROUP)},
    ),
    "schedules": Rules(whole={"held": TOPIC, "held_delay_ms": TOPIC, "measure": TOPIC, "pending_by_topic": TOPIC}),
    "recurring": Rules(
        lists={"all": names_of(TOPIC, "topic"), "find": seen_of(TOPIC, "topic")},
        whole={"drop": TOPIC},
        words={"body": {"found": "wanted"}},
    ),
    "sender": Rules(),
    "dead_letters": Rules(),
    "members": Rules(
        free=frozenset({"clock", "named"}),
        parts={"groups": _GROUPS, "progress": Rules()},
    ),
    "reliabilities": Rules(whole={"summing": CLUSTER}),
    "moves": Rules(words={"cancel": {"move": "request"}}),
    "replays": Rules(),
    "schemas": Rules(
        free=frozenset({"is_active", "parsed_count", "version_number"}),
        whole={"parsed": SUBJECT, "schema": SUBJECT, "schema_count": SUBJECT, "unread": SUBJECT, "uses": SUBJECT},
        lists={"subjects": names_of(SUBJECT)},
    ),
    "validation": Rules(free=frozenset({"rejected", "buried"})),
    "transaction_steps": Rules(free=frozenset({"begun_ms", "is_begun", "is_open", "transaction_id"})),
    "transaction_list": Rules(
        lists={
            "find": one_of(TRANSACTIONAL_ID, "transactional_id"),
            "walking": pages_of(TRANSACTIONAL_ID, "transactional_id"),
        },
        whole={"counting": TRANSACTIONAL_ID, "paging": TRANSACTIONAL_ID},
        free=frozenset({"shown_state"}),
    ),
    "compact": Rules(),
    "tracing": Rules(
        free=frozenset({"identities"}),
        whole={"exporting": TOPIC, "index": TOPIC, "journal": TOPIC, "journeys": TOPIC, "traces": TOPIC},
        parts={"why": Rules()},
    ),
    "accounts": Rules(
        whole=dict.fromkeys(
            (
                "image",
                "alter_scram",
                "change_user",
                "create_key",
                "create_rules",
                "create_user",
                "delete_key",
                "delete_quota",
                "delete_rules",
                "delete_user",
                "new_rule_id",
                "rotate_key",
                "set_quota",
                "verifier",
            ),
            CLUSTER,
        )
    ),
    "metrics": Rules(free=frozenset({"is_on", "meters"}), whole={"exposing": CLUSTER}),
}
