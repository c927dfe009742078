"""One of everything that is stored, as today's code makes it. A sample is never changed, unless its format is: a field
that is added gets a value that is not its default.
"""

from array import array
from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import or_
from typing import Any, NamedTuple

import msgspec

from goqueue.broker.tracing.journal import Page
from goqueue.machines import accounts, ended_sessions, entries, group_options, quotas, tenants
from goqueue.machines import controller_facts as controller
from goqueue.machines.controller_facts import STORED_FACTS as METADATA_FACTS
from goqueue.machines.delays import facts as delays
from goqueue.machines.deliveries import facts as deliveries
from goqueue.machines.deliveries.blocks import Retry, bits_of, pack_bits, pack_retries
from goqueue.machines.deliveries.commands import DeadLetter, Place
from goqueue.machines.groups import offsets
from goqueue.machines.groups.classic import state as classic
from goqueue.machines.groups.commands import GroupProtocol
from goqueue.machines.groups.consumer import facts as consumer
from goqueue.machines.groups.facts import GROUP_FACTS
from goqueue.machines.groups.share import facts as share
from goqueue.machines.machine import Fact
from goqueue.machines.retired import RETIRED
from goqueue.machines.schemas import facts as schemas
from goqueue.machines.transactions import facts as transactions
from goqueue.model.access import Kind, Operation, Rule
from goqueue.model.accounts import ApiKey, KeySecret, User
from goqueue.model.audit import AuditRecord
from goqueue.model.quotas import Quota
from goqueue.model.schemas import Level, Mode, Reference, SchemaKind
from goqueue.model.sessions import EndedSessions
from goqueue.model.tenancy import Tenant, TenantStatus
from goqueue.telemetry.journeys import Note, Step
from goqueue.telemetry.trace_ids import Spot, TraceParent

TOPIC_ID = bytes(range(16))
NOW_MS = 1_763_000_000_000

LEDGERS: dict[str, Sequence[type[Fact]]] = {
    "metadata": METADATA_FACTS,
    "groups": GROUP_FACTS,
    "deliveries": deliveries.DELIVERY_FACTS,
    "delays": delays.DELAY_FACTS,
    "transactions": transactions.TRANSACTION_FACTS,
    "schemas": schemas.SCHEMA_FACTS,
    "store": entries.ENTRY_FACTS,
}
"""What each ledger reads and writes today."""


class Sample(NamedTuple):
    kind: str
    """As in `goqueue.records.formats`."""
    tag: str
    value: Any
    encode: Callable[[], bytes]
    keys: tuple[bytes, ...] = ()


def decoder_of(kind: str) -> Callable[[bytes], Any]:
    """For facts of all versions."""
    retired = [each.reader for each in RETIRED if each.kind == kind]
    decode: Callable[[bytes], Any] = msgspec.msgpack.Decoder(reduce(or_, [*LEDGERS[kind], *retired])).decode
    return decode


def packed(*numbers: int) -> bytes:
    return delays.packed(array("q", numbers))


def metadata() -> list[Fact]:
    return [
        controller.TopicStored("orders", TOPIC_ID, 3, {"retention.ms": "60000", "cleanup.policy": "compact"}, True),
        controller.ClusterNamed("MkU3OEVBNTcwNTJENDM2Qk", b"a secret of this cluster"),
        controller.ProducerIdsTaken(3000),
        group_options.GroupOptionsStored("workers", {"lease.ms": "5000"}),
        controller.TopicForgotten("orders"),
        controller.SchedulePlaced("yearly", TOPIC_ID, 2),
        controller.ScheduleForgotten("yearly"),
        group_options.GroupOptionsForgotten("workers"),
        accounts.UserStored(User("alice", {"SCRAM-SHA-256": b"sealed"}, ("producer",), NOW_MS)),
        accounts.KeyStored(
            ApiKey(
                "k0123456789abcdef",
                "billing",
                (KeySecret(bytes(32), NOW_MS + 1, b"sealed"),),
                ("admin", "metrics"),
                NOW_MS,
                NOW_MS + 2,
                {"team": "shop"},
                True,
                "acme",
            )
        ),
        accounts.RuleStored(
            Rule("r1", "User:alice", Kind.TOPIC, "orders", Operation.READ, False, True, "10.0.0.1", "acme"),
        ),
        accounts.UserForgotten("alice"),
        accounts.KeyForgotten("k0123456789abcdef"),
        accounts.RuleForgotten("r1"),
        quotas.QuotaStored(Quota("alice", "app/1", {"producer_byte_rate": 1024.0}, "10.0.0.7")),
        quotas.QuotaForgotten("=alice/=app%2F1"),
        tenants.TenantStored(
            Tenant(
                "acme", "Acme", "buys", TenantStatus.SUSPENDED, "unpaid", {"plan": "free"}, NOW_MS, {"max_topics": 7}
            ),
        ),
        tenants.TenantForgotten("acme"),
        ended_sessions.SessionsEnded(EndedSessions("User:alice", {"ab" * 16: NOW_MS + 1}, NOW_MS, NOW_MS + 2)),
        ended_sessions.EndedForgotten("User:alice"),
    ]


def groups() -> list[Fact]:
    offers = (GroupProtocol("range", b"\0\1\2"), GroupProtocol("cooperative-sticky", b""))
    member = classic.ClassicMember("m-1", "instance-1", "client", "/10.0.0.7", 45_000, 300_000, offers, b"\0\0assigned")
    one, two = consumer.packed([(TOPIC_ID, 0), (TOPIC_ID, 2)]), consumer.packed([(TOPIC_ID, 1)])
    committed = offsets.OffsetCommitted("billing", "orders", 2, 4711, 7, "so far", TOPIC_ID, NOW_MS, 12)
    return [
        classic.ClassicGeneration("billing", 5, "consumer", "range", "m-1", (member,), NOW_MS, True),
        classic.ClassicForgotten("billing"),
        consumer.ConsumerGroupKept("billing", 9, 8, "range", {"orders": (TOPIC_ID, 3)}, NOW_MS, NOW_MS - 5, True),
        consumer.ConsumerGroupGone("billing"),
        consumer.ConsumerMemberKept(
            "billing",
            consumer.ConsumerMember(
                member_id="m-2",
                instance_id="instance-2",
                rack_id="rack-1",
                client_id="client",
                client_host="/10.0.0.8",
                rebalance_timeout_ms=60_000,
                topic_names=("orders", "refunds"),
                topic_regex="ord.*",
                server_assignor="uniform",
                epoch=9,
                previous_epoch=8,
                state=consumer.MemberState.UNREVOKED,
                assigned=one,
                revoking=two,
                target=one,
                session_ms=30_000,
                is_cooperative=True,
                joined_at_ms=NOW_MS,
                classic_protocols=offers,
            ),
        ),
        consumer.ConsumerMemberGone("billing", "m-2"),
        committed,
        offsets.OffsetForgotten("billing", "orders", 2),
        offsets.OffsetPending(2001, 3, committed),
        offsets.PendingForgotten("billing", "orders", 2, 2001),
        offsets.CoordinatorNoted(11, 4),
        share.ShareGroupGone("workers"),
    ]


def of_deliveries() -> list[Fact]:
    place = Place("workers", "jobs", 1)
    retries = pack_retries(2, [Retry(258, 260, 2, NOW_MS - 9, NOW_MS + 60_000), Retry(300, 300, 1, NOW_MS, 0)])
    letter = DeadLetter(262, "attempts", "no such customer", 3, NOW_MS - 99, NOW_MS)
    return [
        deliveries.Progress(place, 0, TOPIC_ID, 257),
        deliveries.ProgressForgotten(place, 0),
        deliveries.BlockStored(place, 0, 2, pack_bits(bits_of(2, 270, 299)), retries),
        deliveries.BlockForgotten(place, 0, 2),
        deliveries.ReplayStored(place, 1, ((10, 20), (30, 30)), 500),
        deliveries.ReplayForgotten(place, 1),
        deliveries.DeadStored(place, 0, letter),
        deliveries.DeadForgotten(place, 262),
        deliveries.OptionsStored("workers", {"lease.ms": "45000"}),
        deliveries.OptionsForgotten("workers"),
    ]


def of_delays() -> list[Fact]:
    target = "reminders", TOPIC_ID, 1
    key = delays.TargetId(TOPIC_ID, 1)
    recurring = 4, "yearly", *target, "0 0 1 1 *", "Europe/Berlin", NOW_MS
    return [
        delays.ClockFollowed(NOW_MS, -3_600_000, 3_600_000),
        delays.DelayProducer(2002, 1),
        delays.Firing(*target, 6, 17, packed(40, 41), packed(7, 8), packed(NOW_MS, NOW_MS + 1), 4),
        delays.RecurringKept(*recurring, NOW_MS - 9, 77, True, "User:alice", "10.0.0.1", True),
        delays.RecurringRan(4, NOW_MS, NOW_MS + 1000),
        delays.RecurringStopped(4),
        delays.RecurringPaused(4, True, NOW_MS),
        delays.RecurringStored(*recurring, b"a body", "User:alice", "10.0.0.1"),
        delays.Scheduled(*target, 42, NOW_MS, b"a body", 2003, 2, 5, True),
        delays.SchedulesDoomed(*target, packed(40, 42), (b"key",), 2003, 2),
        delays.SchedulesPacked(
            *target, packed(40, 42), packed(NOW_MS, NOW_MS), packed(7, 9), packed(6, 6), 2003, 2, b"\1\0"
        ),
        delays.TargetKept(*target, 42, 18, 5),
        delays.TargetSaved(*target, 42, 18, 5, 41),
        delays.TransactionReleased(*target, 2003, 2, 42),
        delays.Unkept(*target, packed(43)),
        delays.Cancelled(delays.target_key(delays.SCHEDULE, key, 42)),
        delays.JobFinished(delays.target_key(delays.JOB, key, 6), delays.schedule_keys(key, (40, 41))),
        delays.Removed(delays.target_key(delays.UNKEPT, key)),
    ]


def of_transactions() -> list[Fact]:
    changed = transactions.TransactionChanged(
        transactional_id="payments",
        producer_id=2004,
        epoch=6,
        timeout_ms=60_000,
        state=transactions.State.PREPARE_COMMIT,
        updated_ms=NOW_MS,
        serial=11,
        start_ms=NOW_MS - 50,
        partitions=(("ledger", 0), ("ledger", 1)),
        groups=("billing",),
        last=(2004, 5),
        next_producer_id=2005,
        is_last=True,
    )
    return [
        changed,
        transactions.TransactionExpired("payments"),
        transactions.MarkSet("query-1", 12, NOW_MS, True),
        transactions.MarkExpired("query-1"),
    ]


def of_schemas() -> list[Fact]:
    schema = schemas.NewSchema(
        SchemaKind.AVRO, '"string"', b"\1\2\3", (Reference("Item", "items-value", 2),), b'{"metadata":{}}'
    )
    return [
        schemas.SchemaStored(7, schema),
        schemas.SchemaForgotten(7),
        schemas.IdsUsed(8),
        schemas.VersionStored("orders-value", 2, 7, True),
        schemas.VersionForgotten("orders-value", 2),
        schemas.LevelStored("orders-value", Level.FULL_TRANSITIVE),
        schemas.LevelForgotten("orders-value"),
        schemas.ModeStored("orders-value", Mode.READONLY),
        schemas.ModeForgotten("orders-value"),
    ]


def of_store() -> list[Fact]:
    return [
        entries.RevisionReached(7),
        entries.EntryStored(b"/goqueue/goqueue/live/1", b'{"directory": "ab"}', 7, 5, 3),
        entries.EntryForgotten(b"/goqueue/goqueue/live/1"),
    ]


FACTS: dict[str, Callable[[], list[Fact]]] = {
    "metadata": metadata,
    "groups": groups,
    "deliveries": of_deliveries,
    "delays": of_delays,
    "transactions": of_transactions,
    "schemas": of_schemas,
    "store": of_store,
}


def fact_samples() -> list[Sample]:
    encode = msgspec.msgpack.Encoder().encode
    made = []
    for kind, facts in FACTS.items():
        for fact in facts():
            name = fact.__struct_config__.tag or type(fact).__name__
            data = b"" if fact.is_tombstone else encode(fact)
            made.append(Sample(kind, str(name), fact, partial(bytes, data), tuple(fact.stored_keys())))
    return made


def journeys() -> Sample:
    page = Page(
        {"orders": TOPIC_ID},
        [Note(NOW_MS, Step.LEASED, "orders", 1, 10, 19, "workers", "c-1", "the lease of one call")],
        [(Spot("orders", 1, 10), TraceParent("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", True))],
    )
    return Sample("journeys", "Page", page, lambda: msgspec.msgpack.encode(page))


def audit() -> Sample:
    record = AuditRecord(
        NOW_MS,
        1,
        "User:alice",
        "10.0.0.1",
        "http",
        "create_topic",
        "/topics orders",
        "refused",
        "ab" * 32,
        ("name",),
        "X",
        2,
        7,
        "acme",
        True,
        "7f3a-1",
    )
    return Sample("audit", "AuditRecord", record, lambda: msgspec.json.encode(record))


audit_decoder = msgspec.json.Decoder(AuditRecord).decode
journeys_decoder = msgspec.msgpack.Decoder(Page).decode
