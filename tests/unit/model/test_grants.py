"""Who may do what: against an oracle that reads Kafka's rules naively, and by hand where it matters most."""

from hypothesis import given
from hypothesis import strategies as st

from goqueue.model.access import EVERY_NAME, PREFIXED_ROLES, THE_CLUSTER, Kind, Operation, Rule
from goqueue.model.grants import ROLE_OPERATIONS, Grants

ALICE = "User:alice"
ASKABLE = [each for each in Operation if each is not Operation.ALL]


def rule(name: str, operation: Operation, **more: object) -> Rule:
    said: dict[str, object] = {"principal": ALICE, "kind": Kind.TOPIC, **more}
    return Rule("r", name=name, operation=operation, **said)  # type: ignore[arg-type]


def may(rules: list[Rule], operation: Operation, name: str, kind: Kind = Kind.TOPIC, host: str = "10.0.0.1") -> bool:
    return Grants(ALICE, host, (), rules).allows(kind, operation, name)


def test_without_a_rule_nothing_is_allowed() -> None:
    assert not any(may([], operation, "orders", kind) for operation in ASKABLE for kind in Kind)


def test_a_rule_that_forbids_wins() -> None:
    rules = [rule("*", Operation.ALL), rule("pay", Operation.READ, is_allowed=False, is_prefix=True)]
    assert may(rules, Operation.READ, "orders")
    assert not may(rules, Operation.READ, "payroll")
    assert may(rules, Operation.WRITE, "payroll")
    assert not may(rules, Operation.READ, EVERY_NAME), "a total would have what is forbidden in it"
    assert may(rules, Operation.WRITE, EVERY_NAME)


def test_reading_implies_describing_and_nothing_else() -> None:
    rules = [rule("orders", Operation.READ)]
    allowed = {operation for operation in ASKABLE if may(rules, operation, "orders")}
    assert allowed == {Operation.READ, Operation.DESCRIBE}
    assert not may(rules, Operation.READ, "orders2")


def test_forbidding_to_read_leaves_describing() -> None:
    rules = [rule("orders", Operation.ALL), rule("orders", Operation.READ, is_allowed=False)]
    assert not may(rules, Operation.READ, "orders")
    assert may(rules, Operation.DESCRIBE, "orders")


def test_rules_are_of_a_principal_and_an_address() -> None:
    assert not may([rule("orders", Operation.READ, principal="User:bob")], Operation.READ, "orders")
    assert may([rule("orders", Operation.READ, principal="User:*")], Operation.READ, "orders")
    assert may([rule("orders", Operation.READ, host="10.0.0.1")], Operation.READ, "orders")
    assert not may([rule("orders", Operation.READ, host="10.0.0.2")], Operation.READ, "orders")


def test_who_may_create_on_the_cluster_may_create_any_topic() -> None:
    rules = [rule(THE_CLUSTER, Operation.CREATE, kind=Kind.CLUSTER)]
    assert may(rules, Operation.CREATE, "orders")
    assert not may([*rules, rule("orders", Operation.CREATE, is_allowed=False)], Operation.CREATE, "orders")


def test_who_writes_to_any_topic_may_write_idempotently() -> None:
    assert may([rule("orders", Operation.WRITE)], Operation.IDEMPOTENT_WRITE, THE_CLUSTER, Kind.CLUSTER)
    assert not may([rule("orders", Operation.READ)], Operation.IDEMPOTENT_WRITE, THE_CLUSTER, Kind.CLUSTER)


def test_a_role_with_a_prefix_is_for_names_that_begin_so_and_for_nothing_else() -> None:
    def grants(*roles: str) -> Grants:
        return Grants(ALICE, "", roles, ())

    for role in PREFIXED_ROLES:
        whole, part = grants(role), grants(f"{role}:orders-*")
        for kind in Kind:
            for operation in ASKABLE:
                is_named = kind in (Kind.TOPIC, Kind.GROUP, Kind.TRANSACTIONAL_ID, Kind.SUBJECT)
                may_all = whole.allows(kind, operation, "orders-1")
                writes = (kind, operation, role) == (Kind.CLUSTER, Operation.IDEMPOTENT_WRITE, "producer")
                assert part.allows(kind, operation, "orders-1") == (may_all and (is_named or writes))
                assert not part.allows(kind, operation, "payroll") or writes
                assert not part.allows(kind, operation, EVERY_NAME) or writes, "totals have other names in them"
    both = grants("producer:a-*", "consumer:b-*")
    asked = [(op, name) for op in (Operation.WRITE, Operation.READ) for name in ("a-1", "b-1")]
    assert [both.allows(Kind.TOPIC, *each) for each in asked] == [True, False, False, True]
    assert not grants("admin:orders-*", "metrics:x*", "nobody:x*").allows(Kind.TOPIC, Operation.READ, "orders-1")


def test_no_role_but_admin_acts_for_tenants() -> None:
    rights = {role: Grants(ALICE, "", (role,), ()) for role in ROLE_OPERATIONS}
    acting = {role for role, each in rights.items() if each.allows(Kind.TENANT, Operation.DESCRIBE, "acme")}
    assert acting == {"admin"}


def test_nobody_but_an_admin_may_give_rights() -> None:
    mighty = {
        role for role in ROLE_OPERATIONS if Grants(ALICE, "", (role,), ()).allows(Kind.CLUSTER, Operation.ALTER, "x")
    }
    assert mighty == {"admin"}


def test_no_role_but_consumer_and_admin_reads_what_messages_hold() -> None:
    readers = {
        role for role in ROLE_OPERATIONS if Grants(ALICE, "", (role,), ()).allows(Kind.TOPIC, Operation.READ, "x")
    }
    assert readers == {"admin", "consumer"}


def test_an_admin_may_be_forbidden_something() -> None:
    limited = Grants(ALICE, "", ("admin",), [rule("pay", Operation.READ, is_allowed=False)])
    assert not limited.allows(Kind.TOPIC, Operation.READ, "pay")


NAMES = st.sampled_from(["a", "ab", "abc", "b", "ba", "*"])
RULES = st.builds(
    Rule,
    st.just("r"),
    st.sampled_from([ALICE, "User:*", "User:bob"]),
    st.sampled_from([Kind.TOPIC, Kind.GROUP]),
    NAMES,
    st.sampled_from(list(Operation)),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["*", "10.0.0.1", "10.0.0.2"]),
)
_IMPLY = {
    Operation.DESCRIBE: {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER},
    Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
}


def naive(rules: list[Rule], kind: Kind, operation: Operation, name: str) -> bool:
    def matches(each: Rule) -> bool:
        is_named = name.startswith(each.name) if each.is_prefix else each.name in (name, "*")
        is_mine = each.principal in (ALICE, "User:*") and each.host in ("*", "10.0.0.1")
        return is_mine and each.kind is kind and is_named

    found = [each for each in rules if matches(each)]
    if any(not each.is_allowed and each.operation in (operation, Operation.ALL) for each in found):
        return False
    enough = {operation, Operation.ALL} | _IMPLY.get(operation, set())
    return any(each.is_allowed and each.operation in enough for each in found)


@given(st.lists(RULES, max_size=8), st.sampled_from([Kind.TOPIC, Kind.GROUP]), st.sampled_from(ASKABLE))
def test_compiled_rules_say_what_the_rules_say(rules: list[Rule], kind: Kind, operation: Operation) -> None:
    grants = Grants(ALICE, "10.0.0.1", (), rules)
    for name in ("a", "ab", "abc", "b", "ba", "c"):
        assert grants.allows(kind, operation, name) == naive(rules, kind, operation, name)
        assert grants.allows(kind, operation, name) == naive(rules, kind, operation, name), "the same when asked again"


@given(st.lists(RULES, max_size=3), st.lists(RULES, max_size=3), st.sampled_from(ASKABLE))
def test_who_is_alike_is_allowed_the_same_names(some: list[Rule], others: list[Rule], operation: Operation) -> None:
    one, other = (Grants(ALICE, "10.0.0.1", (), rules) for rules in (some, others))
    names = ["a", "ab", "abc", "abcd", "b", "ba", "c", EVERY_NAME]
    for kind in (Kind.TOPIC, Kind.GROUP):
        told = one.alike(kind, operation)
        if told == other.alike(kind, operation):
            for name in names:
                assert one.allows(kind, operation, name) == other.allows(kind, operation, name)
        if told is True:
            assert all(one.allows(kind, operation, name) for name in names)


def test_whoever_may_see_everything_is_alike() -> None:
    roles = [Grants(ALICE, "", (role,), ()).alike(Kind.TOPIC, Operation.DESCRIBE) for role in ("admin", "viewer")]
    assert roles == [True, True]
    part, same = (Grants(who, "", ("consumer:a-*",), ()).alike(Kind.TOPIC, Operation.DESCRIBE) for who in ("a", "b"))
    assert part == same
    assert part is not True
