"""Which methods of the broker's services the APIs may use, by the attributes of `Broker`. Methods whose parameters say
what they name need not stand here.
"""

from collections.abc import Mapping

from goqueue.broker.view.ports import Rules, held_of, names_of, one_of, pages_of, place_of, seen_of
from goqueue.model.access import Kind

TOPIC, GROUP, TRANSACTIONAL_ID, SUBJECT = Kind.TOPIC, Kind.GROUP, Kind.TRANSACTIONAL_ID, Kind.SUBJECT
CLUSTER = Kind.CLUSTER

OF_NODE = frozenset(
    {"identity", "clock", "dice", "health", "durable", "default_partitions", "creates_topics", "settings"}
)
"""What no name belongs to."""

_GROUPS = Rules(
    tenants=frozenset(
        {"new_member_id", "partitions", "page", "listed", "ask", "submit", "evict", "find_queue", "is_stream"}
        | {"kind_of", "partition_of", "watch", "unwatch"}
    ),
    free=frozenset({"new_member_id", "partitions"}),
    pages={"page": GROUP},
    words={"listed": {"names": "group_ids"}},
)
_PROGRESS = Rules(tenants=frozenset({"even_out", "start_at"}), words={"start_at": {"starts": "places"}})
_TRANSACTIONS = Rules(
    tenants=frozenset(
        {"ids", "is_active", "of_producer", "describe", "end_hanging", "end_together", "partition_of", "submit"}
        | {"verify_writer", "when_settled", "now_ms", "enlisting", "has_joined", "may_write"}
    ),
    free=frozenset({"ids", "is_active"}),
    whole={"committed": TRANSACTIONAL_ID, "aborted": TRANSACTIONAL_ID},
    lists={"of_producer": one_of(TRANSACTIONAL_ID, "transactional_id")},
    parts={"enlisting": Rules(tenants=frozenset({"add_partitions", "add_group"}))},
)

RULES: Mapping[str, Rules] = {
    "topics": Rules(
        free=frozenset({"defaults", "new_id", "on_change", "partitioner"}),
        tenants=frozenset(
            {"defaults", "new_id", "partitioner", "durability", "end_offset", "exists", "find_replica", "follow"}
            | {"has", "has_failed", "leader_epoch", "leads", "led", "not_leader", "replica", "submit", "unwatch"}
        ),
    ),
    "publisher": Rules(
        free=frozenset(
            {"acknowledgements", "admit_plain", "append", "misses_first", "now_s", "refused", "sees_no_wishes", "turns"}
        ),
        tenants=frozenset(
            {"acknowledgements", "admit_plain", "append", "misses_first", "now_s", "refused", "sees_no_wishes", "turns"}
            | {"acknowledged", "admit", "has_wishes", "may_take_turns", "must_open", "publish", "steps", "told_steps"}
            | {"note_received", "rooms"}
        ),
    ),
    "fetcher": Rules(free=frozenset({"session"})),
    "groups": _GROUPS,
    "lag": Rules(tenants=frozenset({"of_group", "of_some"})),
    "transactions": _TRANSACTIONS,
    "queues": Rules(
        tenants=frozenset(
            {
                "page",
                "page_with_options",
                "check_is_queue",
                "confirm",
                "count_elsewhere",
                "drop",
                "has_group",
                "has_ready",
                "held_by",
            }
            | {"is_busy", "is_open", "is_queue", "lag", "lanes", "leader_epoch", "measure", "oldest_ages_ms", "open"}
            | {"options", "places", "reach", "replica", "seek", "set_options", "settled_below", "stands", "is_behind"}
            | {"held_runs", "record_state", "submit", "unwatch", "watch", "watch_elsewhere"}
        ),
        pages={"page": GROUP, "page_with_options": GROUP},
        lists={"groups": names_of(GROUP)},
        whole={"held": GROUP, "tally": GROUP, "measured": GROUP, "readers_by_partition": GROUP},
        claims={"submit": (TOPIC, GROUP)},
    ),
    "receiver": Rules(
        tenants=frozenset(
            {"give_back", "is_asked", "measure", "open", "read", "receive", "receive_plain", "settle_runs"}
        ),
        claims={"receive": (TOPIC, GROUP), "receive_plain": (TOPIC, GROUP)},
    ),
    "settler": Rules(
        tenants=frozenset(
            {"lease_of", "lease_receipt", "place_of", "receipt", "receipt_held", "receipts_held"}
            | {"settle", "settle_one"}
        ),
        free=frozenset({"spread"}),
        lists={"lease_of": place_of, "place_of": place_of},
        claims={"settle": (TOPIC, GROUP), "settle_one": (TOPIC, GROUP)},
    ),
    "leases": Rules(
        tenants=frozenset({"extend", "finish", "held"}),
        free=frozenset({"extend", "finish"}),
        whole={"held": GROUP},
        lists={"held": held_of},
    ),
    "schedules": Rules(
        tenants=frozenset({"cancel", "count", "look_up", "pending", "reschedule", "waiting"}),
        whole={"held": TOPIC, "held_delay_ms": TOPIC, "measure": TOPIC, "pending_by_topic": TOPIC},
    ),
    "recurring": Rules(
        tenants=frozenset({"all", "body", "drop", "find", "pause", "store"}),
        lists={"all": names_of(TOPIC, "topic"), "find": seen_of(TOPIC, "topic")},
        words={
            "body": {"found": "wanted"},
            "drop": {"name": "schedule"},
            "find": {"name": "schedule"},
            "pause": {"name": "schedule"},
        },
    ),
    "sender": Rules(tenants=frozenset({"choose", "refused", "send"})),
    "dead_letters": Rules(
        tenants=frozenset({"discard", "last_redrive", "look", "name_of", "purge", "redrive", "scan"})
    ),
    "members": Rules(
        free=frozenset({"clock", "named"}),
        parts={"groups": _GROUPS, "progress": _PROGRESS},
        tenants=frozenset({"beat", "clock", "commit", "describe", "find", "join", "leave", "named", "revoke", "serve"}),
    ),
    "reliabilities": Rules(whole={"summing": CLUSTER}),
    "moves": Rules(tenants=frozenset({"cancel", "count_elsewhere", "of", "start"})),
    "replays": Rules(
        tenants=frozenset(
            {"compare", "fork", "forks", "look", "places", "promote", "replay", "resolve", "seek", "seek_stream"}
        ),
        lists={"forks": names_of(GROUP)},
    ),
    "schemas": Rules(
        tenants=frozenset(
            {"is_active", "version_number", "subjects", "level", "look_up", "mode", "prepare", "problems"}
            | {"referenced_by", "register", "submit", "version", "versions", "versions_of"}
        ),
        free=frozenset({"is_active", "parsed_count", "version_number"}),
        whole={"parsed": SUBJECT, "schema": SUBJECT, "schema_count": SUBJECT, "unread": SUBJECT, "uses": SUBJECT},
        lists={"subjects": names_of(SUBJECT)},
    ),
    "validation": Rules(free=frozenset({"rejected", "dead_lettered"})),
    "transaction_steps": Rules(
        tenants=frozenset(
            {"begun_ms", "is_begun", "is_open", "transaction_id", "add_partition", "begin", "end", "find", "init"}
            | {"publish", "publish_as"}
        ),
        free=frozenset({"begun_ms", "is_begun", "is_open", "transaction_id"}),
        words={name: {"known": "given"} for name in ("begun_ms", "is_begun", "is_open", "transaction_id")},
    ),
    "transaction_list": Rules(
        lists={
            "find": one_of(TRANSACTIONAL_ID, "transactional_id"),
            "walking": pages_of(TRANSACTIONAL_ID, "transactional_id"),
        },
        whole={"counting": TRANSACTIONAL_ID, "paging": TRANSACTIONAL_ID},
        free=frozenset({"shown_state"}),
        tenants=frozenset({"find", "shown_state", "walking"}),
        words={"shown_state": {"known": "given"}},
    ),
    "compact": Rules(tenants=frozenset({""})),
    "tracing": Rules(
        free=frozenset({"identities"}),
        whole={"exporting": TOPIC, "index": TOPIC, "journal": TOPIC, "journeys": TOPIC, "traces": TOPIC},
        parts={"why": Rules(tenants=frozenset({"ask"}))},
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
                "key_uses",
                "new_rule_id",
                "rekey",
                "rotate_key",
                "set_quota",
                "verifier",
            ),
            CLUSTER,
        )
    ),
    "tenants": Rules(whole=dict.fromkeys(("all", "change", "create", "delete", "find", "usage"), CLUSTER)),
    "metrics": Rules(
        tenants=frozenset({"is_on", "meters", "together"}),
        free=frozenset({"is_on", "meters", "together"}),
        whole={"exposing": CLUSTER, "others": CLUSTER},
    ),
}
