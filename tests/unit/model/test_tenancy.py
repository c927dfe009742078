"""Names of tenants: one to one, whoever they belong to."""

import struct

import pytest

from goqueue.machines.groups.classic.payloads import (
    partitions_of_assignment,
    partitions_owned,
    renamed_assignment,
    renamed_subscription,
    topics_of_subscription,
)
from goqueue.model.errors import InvalidName
from goqueue.model.names import check_kept_name, check_topic_name
from goqueue.model.refusal import Refused
from goqueue.model.tenancy import DEFAULT_TENANT, ONE_TENANT, Tenancy, check_tenant_id, tenant_of

TENANTS = {"acme": 1, "beta": 2}
ACME, DEFAULT = Tenancy("acme", TENANTS), Tenancy(DEFAULT_TENANT, TENANTS)


def test_a_name_is_kept_with_its_tenant_and_comes_back_without() -> None:
    assert ACME.full("orders") == "acme~orders"
    assert ACME.plain("acme~orders") == "orders"
    assert (ACME.owns("acme~orders"), ACME.owns("beta~orders"), ACME.owns("orders")) == (True, False, False)


def test_names_of_the_default_tenant_stay_as_they_are() -> None:
    assert (DEFAULT.full("orders"), DEFAULT.plain("orders"), DEFAULT.owns("orders")) == ("orders", "orders", True)
    assert not DEFAULT.owns("acme~orders")
    assert not DEFAULT.may_be_called("beta~workers")
    assert DEFAULT.may_be_called("gamma~workers")
    assert (ONE_TENANT.is_all, DEFAULT.is_all, ACME.is_all) == (True, False, False)


def test_whose_a_name_is_is_told_by_the_tenants_that_there_are() -> None:
    names = ("acme~alice", "gamma~alice", "alice")
    assert [tenant_of(name, TENANTS) for name in names] == ["acme", "default", "default"]


@pytest.mark.parametrize("name", ["acme~orders", "orders", "a-1~o.r_d-ers"])
def test_a_topic_may_be_kept_under_the_name_of_a_tenant(name: str) -> None:
    check_kept_name(name)


@pytest.mark.parametrize("name", ["~orders", "Acme~orders", "acme~", "acme~a~b", "acme~..", f"acme~{'x' * 249}"])
def test_other_names_with_the_sign_are_no_names_of_topics(name: str) -> None:
    with pytest.raises(InvalidName):
        check_kept_name(name)
    with pytest.raises(InvalidName):
        check_topic_name("acme~orders")


@pytest.mark.parametrize("tenant_id", ["", "Acme", "a~b", "-a", "a" * 33, "a.b"])
def test_a_tenants_id_has_letters_digits_and_dashes(tenant_id: str) -> None:
    with pytest.raises(Refused):
        check_tenant_id(tenant_id)


def text(word: str) -> bytes:
    return struct.pack(">H", len(word)) + word.encode()


def test_topics_in_what_members_of_a_classic_group_say_are_renamed_and_all_else_stays() -> None:
    owned = struct.pack(">i", 1) + text("orders") + struct.pack(">ii", 1, 7)
    rest = struct.pack(">i", 5) + text("rack")
    metadata = struct.pack(">hi", 3, 2) + text("orders") + text("x") + struct.pack(">i", 2) + b"ud" + owned + rest
    full = renamed_subscription(metadata, ACME.full)
    assert topics_of_subscription(full) == ["acme~orders", "acme~x"]
    assert partitions_owned(full) == [("acme~orders", 7)]
    assert full.endswith(rest)
    assert renamed_subscription(full, ACME.plain) == metadata
    assignment = struct.pack(">hi", 1, 1) + text("orders") + struct.pack(">iii", 2, 0, 1) + struct.pack(">i", -1)
    full = renamed_assignment(assignment, ACME.full)
    assert partitions_of_assignment(full) == [("acme~orders", 0), ("acme~orders", 1)]
    assert renamed_assignment(full, ACME.plain) == assignment


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\1\0\0\0\2\0\5ab", b"\xff" * 40])
def test_what_is_no_subscription_is_passed_on_as_it_is(data: bytes) -> None:
    assert renamed_subscription(data, ACME.full) == data
    assert renamed_assignment(data, ACME.full) == data
