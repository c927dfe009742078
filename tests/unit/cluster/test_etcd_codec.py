"""Keys and values as they stand in etcd: one golden sample of each, which must never change."""

import json

import pytest

from goqueue.cluster.etcd.codec import decode_entry, encode_compares, encode_puts
from goqueue.cluster.etcd.keys import MetadataUnreadable, key_of, key_path, prefix_of
from goqueue.cluster.etcd.port import KeyCompare, KeyPut, KeyValue
from goqueue.cluster.etcd.values import encode_value
from goqueue.model.access import Kind, Operation, Rule
from goqueue.model.accounts import ApiKey, KeySecret, User
from goqueue.model.metadata import (
    ApiKeyKey,
    ClusterKey,
    ClusterValue,
    Compare,
    CompareGone,
    EndedKey,
    Event,
    GoneKey,
    GoneValue,
    GroupKey,
    GroupValue,
    Key,
    LiveKey,
    NodeKey,
    NodeValue,
    PartitionKey,
    ProducerIdsKey,
    ProducerIdsValue,
    Put,
    QuotaOf,
    RemovedKey,
    RemovedValue,
    RuleKey,
    ScheduleKey,
    ScheduleValue,
    TenantKey,
    TopicKey,
    TopicValue,
    UserKey,
    Value,
)
from goqueue.model.placements import Lost, NodeInfo, Placement
from goqueue.model.quotas import Quota
from goqueue.model.sessions import EndedSessions
from goqueue.model.tenancy import Tenant, TenantStatus

ID = bytes(range(16))
HEX = "000102030405060708090a0b0c0d0e0f"
PREFIX = "/goqueue/main/"
MOD, CREATED, LEASE = 84_512, 84_000, 7_587_869_134_567
NODE = NodeInfo(
    3,
    CREATED,
    ("k3.example", 9092),
    "a",
    ("10.0.0.3", 9192),
    ("10.0.0.3", 8080),
    ("::1", 9000),
    "5f0c",
    "b1d2",
    1_763_312_345_123,
    "0.3.0",
    (1, 2),
    LEASE,
)
NODE_JSON = (
    '{"v":1,"directory":"5f0c","boot":"b1d2","started":1763312345123,"rack":"a","formats":[1,2],"version":"0.3.0",'
    '"peer":"10.0.0.3:9192","kafka":"k3.example:9092","http":"10.0.0.3:8080","grpc":"[::1]:9000"}'
)
BARE_JSON = (
    '{"v":1,"directory":"","boot":"","started":0,"rack":null,"formats":[1,1],"version":"",'
    '"peer":null,"kafka":null,"http":null,"grpc":null}'
)
PLACEMENT_JSON = (
    '{"v":1,"replicas":[3,1,2],"adding":[],"removing":[],"isr":[1,3],'
    '"leader":3,"incarnation":84512,"epoch":17,"lost":[]}'
)
LOST_JSON = (
    '{"v":1,"replicas":[3,4],"adding":[4],"removing":[1],"isr":[3],"leader":-1,"incarnation":0,"epoch":18,'
    '"lost":[{"at":5,"leader":3,"offset":100,"why":"operator"}]}'
)
LOST = Placement(-1, 0, 18, (3,), (3, 4), (4,), (1,), MOD, (Lost(5, 3, 100, "operator"),))
TOPIC_JSON = '{{"v":1,"id":"{}","partitions":3,"replication_factor":2,"state":"{}","overrides":{{"retention.ms":"5"}}}}'
OVERRIDES = {"retention.ms": "5"}

SAMPLES: list[tuple[str, str, Key, Value]] = [
    (
        "cluster",
        '{"v":1,"id":"c1","secret":"00ff","groups":16,"transactions":16,"format":2,"halted":"restored","recoveries":1}',
        ClusterKey(),
        ClusterValue("c1", b"\0\xff", 16, 16, 2, "restored", 1),
    ),
    ("nodes/3", '{"v":1,"directory":"5f0c","rack":"a","wanted":"drain"}', NodeKey(3), NodeValue("5f0c", "a", "drain")),
    ("live/3", NODE_JSON, LiveKey(3), NODE),
    ("live/0", BARE_JSON, LiveKey(0), NodeInfo(0, CREATED, lease=LEASE)),
    (
        "live/1",
        BARE_JSON[:-1] + ',"listeners":{"safe":"[::1]:9093"}}',
        LiveKey(1),
        NodeInfo(1, CREATED, lease=LEASE, listeners=(("safe", ("::1", 9093)),)),
    ),
    (
        "topics/orders",
        TOPIC_JSON.format(HEX, "live"),
        TopicKey("orders"),
        TopicValue(ID, 3, OVERRIDES, replication_factor=2),
    ),
    (
        "topics/@groups",
        TOPIC_JSON.format(HEX, "making"),
        TopicKey("@groups"),
        TopicValue(ID, 3, OVERRIDES, is_making=True, replication_factor=2),
    ),
    (
        "topics/gone.soon",
        TOPIC_JSON.format(HEX, "deleting"),
        TopicKey("gone.soon"),
        TopicValue(ID, 3, OVERRIDES, is_deleting=True, replication_factor=2),
    ),
    (
        f"partitions/{HEX}/12",
        PLACEMENT_JSON,
        PartitionKey(ID, 12),
        Placement(3, 84_512, 17, (1, 3), (3, 1, 2), revision=MOD),
    ),
    (f"partitions/{HEX}/0", LOST_JSON, PartitionKey(ID, 0), LOST),
    (f"gone/{HEX}", '{"v":1,"name":"orders","at":17}', GoneKey(ID), GoneValue("orders", 17)),
    (f"removed/{HEX}/2", '{"v":1,"at":18}', RemovedKey(ID, 2), RemovedValue(18)),
    (
        "groups/billing/eu ü",
        '{"v":1,"options":{"ack.wait.ms":"9"}}',
        GroupKey("billing/eu ü"),
        GroupValue({"ack.wait.ms": "9"}),
    ),
    ("producer-ids", '{"v":1,"end":5000}', ProducerIdsKey(), ProducerIdsValue(5000)),
    (
        "users/bob,=x",
        '{"v":1,"user":{"name":"bob,=x","scram":{"SCRAM-SHA-256":"AAE="},"roles":["admin"],"created_ms":17}}',
        UserKey("bob,=x"),
        User("bob,=x", {"SCRAM-SHA-256": b"\0\1"}, ("admin",), 17),
    ),
    (
        "keys/k01",
        (
            '{"v":1,"key":{"key_id":"k01","name":"app","secrets":[{"digest":"AA==","ends_ms":9,"sealed":"AQ=="}],'
            '"roles":["viewer"],"created_ms":17,"expires_ms":18,"metadata":{"team":"shop"},"is_bootstrap":true,'
            '"tenant":"acme"}}'
        ),
        ApiKeyKey("k01"),
        ApiKey("k01", "app", (KeySecret(b"\0", 9, b"\1"),), ("viewer",), 17, 18, {"team": "shop"}, True, "acme"),
    ),
    (
        "rules/r1",
        (
            '{"v":1,"rule":{"rule_id":"r1","principal":"User:*","kind":"topic","name":"orders","operation":3,'
            '"is_allowed":false,"is_prefix":true,"host":"10.0.0.1","tenant":"default"}}'
        ),
        RuleKey("r1"),
        Rule("r1", "User:*", Kind.TOPIC, "orders", Operation.READ, False, True, "10.0.0.1"),
    ),
    (
        "quotas/=bob/=app%2F1",
        '{"v":1,"quota":{"user":"bob","client_id":"app/1","limits":{"request_rate":2.5},"ip":null}}',
        QuotaOf("=bob/=app%2F1"),
        Quota("bob", "app/1", {"request_rate": 2.5}),
    ),
    (
        "tenants/acme",
        (
            '{"v":1,"tenant":{"tenant_id":"acme","name":"Acme","description":"buys","status":"suspended",'
            '"reason":"unpaid","metadata":{"plan":"free"},"created_ms":17,"quotas":{"max_topics":7}}}'
        ),
        TenantKey("acme"),
        Tenant("acme", "Acme", "buys", TenantStatus.SUSPENDED, "unpaid", {"plan": "free"}, 17, {"max_topics": 7}),
    ),
    (
        "ended/User:org/bob",
        '{"v":1,"ended":{"principal":"User:org/bob","ids":{"abcd":9},"before_ms":7,"lasts_ms":9}}',
        EndedKey("User:org/bob"),
        EndedSessions("User:org/bob", {"abcd": 9}, 7, 9),
    ),
    ("schedules/night/ly", f'{{"v":1,"topic":"{HEX}","partition":4}}', ScheduleKey("night/ly"), ScheduleValue(ID, 4)),
]


def entry(path: str, value: str | None) -> KeyValue:
    return KeyValue((PREFIX + path).encode(), None if value is None else value.encode(), MOD, CREATED, LEASE)


@pytest.mark.parametrize(("path", "text", "key", "value"), SAMPLES, ids=[sample[0] for sample in SAMPLES])
def test_what_stands_in_etcd_is_read_and_written_as_ever(path: str, text: str, key: Key, value: Value) -> None:
    assert decode_entry(PREFIX, entry(path, text)) == Event(key, value, MOD)
    assert key_path(key) == path
    assert encode_value(value).decode() == text


def test_a_quota_from_before_there_were_those_of_addresses_is_of_none() -> None:
    text = '{"v":1,"quota":{"user":"bob","client_id":"app/1","limits":{"request_rate":2.5}}}'
    assert decode_entry(PREFIX, entry("quotas/=bob/=app%2F1", text)) == Event(
        QuotaOf("=bob/=app%2F1"), Quota("bob", "app/1", {"request_rate": 2.5}), MOD
    )


def test_a_tenant_from_before_there_were_quotas_has_none() -> None:
    text = '{"v":1,"tenant":{"tenant_id":"acme","name":"Acme","created_ms":17}}'
    assert decode_entry(PREFIX, entry("tenants/acme", text)) == Event(
        TenantKey("acme"), Tenant("acme", "Acme", created_ms=17), MOD
    )


def test_every_kind_of_key_has_a_sample() -> None:
    assert {type(sample[2]) for sample in SAMPLES} == set(Key.__args__)
    assert {type(sample[3]) for sample in SAMPLES} == set(Value.__args__)


@pytest.mark.parametrize("path", [sample[0] for sample in SAMPLES])
def test_a_key_that_was_deleted_is_an_event_without_a_value(path: str) -> None:
    event = decode_entry(PREFIX, entry(path, None))
    assert event is not None
    assert event == Event(key_of(path), None, MOD)  # type: ignore[arg-type]


@pytest.mark.parametrize(("path", "text"), [sample[:2] for sample in SAMPLES])
def test_a_later_version_of_a_value_is_refused_by_name(path: str, text: str) -> None:
    later = json.loads(text) | {"v": 2}
    with pytest.raises(MetadataUnreadable, match=f"{path!r} in etcd has version 2.*upgrade this node"):
        decode_entry(PREFIX, entry(path, json.dumps(later)))
    with pytest.raises(MetadataUnreadable, match="has version 7"):
        decode_entry(PREFIX, entry(path, '{"v": 7, "all": "else"}'))


@pytest.mark.parametrize(("path", "text"), [sample[:2] for sample in SAMPLES])
def test_fields_that_are_added_later_are_passed_over(path: str, text: str) -> None:
    more = json.loads(text) | {"hint": [1]}
    assert decode_entry(PREFIX, entry(path, json.dumps(more))) == decode_entry(PREFIX, entry(path, text))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("cluster", "{"),
        ("cluster", '{"v":1}'),
        ("producer-ids", '{"v":1,"end":"many"}'),
        ("live/x", NODE_JSON),
        ("live/03", NODE_JSON),
        ("live/3", NODE_JSON.replace("10.0.0.3:9192", "10.0.0.3")),
        (f"partitions/{HEX}", PLACEMENT_JSON),
        (f"partitions/{HEX.upper()}/0", PLACEMENT_JSON),
        ("partitions/xyz/0", PLACEMENT_JSON),
        ("topics/orders", TOPIC_JSON.format("hex", "live")),
        ("topics/orders", TOPIC_JSON.format(HEX, "asleep")),
    ],
)
def test_what_nothing_of_ours_wrote_is_refused(path: str, text: str) -> None:
    with pytest.raises(MetadataUnreadable):
        decode_entry(PREFIX, entry(path, text))


@pytest.mark.parametrize("path", ["throttle", "settings/3", "something", ""])
def test_a_kind_of_key_that_is_not_known_is_passed_over(path: str) -> None:
    assert decode_entry(PREFIX, entry(path, "not even JSON")) is None


def test_a_step_compares_revisions_and_puts_values_under_their_leases() -> None:
    compares: list[Compare | CompareGone] = [
        Compare(ProducerIdsKey(), 7),
        CompareGone(LiveKey(2), 9),
        Compare(TopicKey("a"), 0),
    ]
    assert encode_compares(PREFIX, compares) == [
        KeyCompare(b"/goqueue/main/producer-ids", 7, True),
        KeyCompare(b"/goqueue/main/live/2", 9, False),
        KeyCompare(b"/goqueue/main/topics/a", 0, True),
    ]
    assert encode_puts(PREFIX, [Put(ProducerIdsKey(), ProducerIdsValue(9), 5), Put(TopicKey("a"), None)]) == [
        KeyPut(b"/goqueue/main/producer-ids", b'{"v":1,"end":9}', 5),
        KeyPut(b"/goqueue/main/topics/a", None, 0),
    ]


def test_the_keys_of_a_cluster_are_under_its_name() -> None:
    assert prefix_of("main") == PREFIX
