"""Share groups of two tenants whose groups and members have the same names."""

from typing import Any

from goqueue.machines.tenant_commands import ChangeTenant
from goqueue.model.codes import Code
from goqueue.model.tenancy import Tenant, TenantStatus
from goqueue.wire.kafka.messages import share_groups as wire
from tests.unit.doors.kafka.share_members import ACCEPT, House, Member, offsets, topic_id

TENANTS = ("acme", "beta")


class Houses(House):
    def __init__(self) -> None:
        super().__init__()
        for tenant in TENANTS:
            self.broker.broker.tenants.create(Tenant(tenant, tenant), lambda _reply: None)
            self.broker.commit()
            self.broker.create(f"{tenant}~orders", 1)
            self.broker.publish(f"{tenant}~orders", b"a", b"b")
        self.broker.commit()

    def set_status(self, status: TenantStatus) -> None:
        self.broker.broker.tenants.change(ChangeTenant("acme", status=status), lambda _reply: None)
        self.broker.commit()


class OfTenant(Member):
    def __init__(self, house: House, tenant: str, name: str = "m") -> None:
        super().__init__(house, name)
        self._topic_id = topic_id(f"{tenant}~orders")
        house.door._set_access(self._connection, house.door._gate.trusted_in(tenant))
        assert house.__class__.configure(_Configuring(house, self), share_auto_offset_reset="earliest") is Code.NONE

    def request(self, acks: Any = None, **fields: Any) -> wire.ShareFetchRequest:
        request = super().request(acks, **fields)
        for topic in request.topics:
            topic.topic_id = self._topic_id
        return request


class _Configuring(House):
    def __init__(self, house: House, operator: Member) -> None:
        self.broker, self.door, self.operator = house.broker, house.door, operator


def test_a_member_of_a_tenant_takes_acknowledges_and_gives_back() -> None:
    house = Houses()
    first = OfTenant(house, "acme")
    assert first.get() == offsets(0, 1)
    assert first.ack(0, 0) is Code.NONE
    first.epoch = -1
    assert first.fetch().error_code == 0
    assert OfTenant(house, "acme", "other").get() == offsets(1)


def test_what_a_lost_member_of_a_tenant_held_is_delivered_again_at_once() -> None:
    house = Houses()
    first = OfTenant(house, "acme")
    assert first.get() == offsets(0, 1)
    first.lose_connection()
    assert OfTenant(house, "acme", "other").get() == offsets(0, 1, count=2)


def test_what_a_member_held_is_given_back_though_its_tenant_is_suspended() -> None:
    house = Houses()
    first = OfTenant(house, "acme")
    assert first.get() == offsets(0, 1)
    house.set_status(TenantStatus.SUSPENDED)
    first.lose_connection()
    house.set_status(TenantStatus.ACTIVE)
    assert OfTenant(house, "acme", "other").get() == offsets(0, 1, count=2)


def test_a_session_of_one_tenant_is_none_of_another() -> None:
    house = Houses()
    ours, theirs = OfTenant(house, "acme"), OfTenant(house, "beta")
    assert ours.get() == offsets(0, 1)
    theirs.epoch, theirs.to_add = -1, []
    assert theirs.fetch().error_code == Code.SHARE_SESSION_NOT_FOUND
    theirs.epoch, theirs.to_add = 0, [0]
    assert theirs.get() == offsets(0, 1)
    theirs.lose_connection()
    assert ours.fetch({0: [(0, 1, [ACCEPT])]}).error_code == 0
    assert OfTenant(house, "acme", "other").get() == {}
