"""The audit trails of a closed cluster, asked for through any node."""

from pathlib import Path
from typing import Any

import pytest

from goqueue.client import Admin, Security
from goqueue.client.http import HttpRefused
from goqueue.node.values import Authentication
from goqueue.testing import Cluster, cluster
from goqueue.wire.rest.audit import AuditTrail
from goqueue.wire.rest.operations.accounts import CREATE_KEY, CREATE_USER, LIST_KEYS
from goqueue.wire.rest.operations.audit import READ_AUDIT
from goqueue.wire.rest.operations.tenants import CREATE_TENANT
from goqueue.wire.rest.operations.topics import DESCRIBE_TOPIC, LIST_TOPICS

KEY = f"gqk_k0123456789abcdef_{'5a' * 32}"


def test_any_node_tells_the_trails_of_all_and_names_who_does_not_answer(tmp_path: Path) -> None:
    first_key = tmp_path / "first.key"
    first_key.write_text(KEY)
    first_key.chmod(0o600)

    async def scenario(c: Cluster) -> None:
        await c.settled()
        admins = [Admin(c.node(number).http, security=Security(api_key=KEY), **c.ports) for number in (1, 2, 3)]
        for number, admin in enumerate(admins, 1):
            await admin.create_topic(f"topic-{number}", partitions=3)
            await c.advance("1s")
        for admin in admins:
            trail = await admin.call(READ_AUDIT)
            done = [(each.node, each.resource) for each in trail.entries if each.outcome == "done"]
            assert done == [(number, f"/topics topic-{number}") for number in (1, 2, 3)]
            assert [each.at_ms for each in trail.entries] == sorted(each.at_ms for each in trail.entries)
            assert ([each.node for each in trail.trails], trail.not_answered) == ([1, 2, 3], [])
        made = await admins[1].call(CREATE_KEY, name="viewer", roles=["viewer"])
        await c.advance("1s")
        viewer = Admin(c.node(2).http, security=Security(api_key=str(made.key)), **c.ports)
        assert {each.last_used_at for each in (await admins[2].call(LIST_KEYS)).keys if each.id == made.id} == {None}
        await viewer.call(LIST_TOPICS)
        for admin in admins:
            (used,) = [each.last_used_at for each in (await admin.call(LIST_KEYS)).keys if each.id == made.id]
            assert used is not None, "at node 2"
        await viewer.close()
        second = await admins[0].call(READ_AUDIT, node=2)
        assert ({each.node for each in second.entries}, second.not_answered) == ({2}, [])
        with pytest.raises(HttpRefused, match="no node 9"):
            await admins[0].call(READ_AUDIT, node=9)
        c.kill(3)
        await c.advance("1m")
        trail = await admins[0].call(READ_AUDIT)
        assert ([each.node for each in trail.trails], trail.not_answered) == ([1, 2], [3])
        for admin in admins:
            await admin.close()

    cluster(nodes=3, authentication=Authentication.ON, bootstrap_key_file=first_key).run(scenario)


class TwoTenants:
    """Of a closed cluster of three nodes; their topics are made through each of them."""

    def __init__(self, c: Cluster) -> None:
        self._c = c
        self.admins: dict[str, list[Admin]] = {}
        self._made: list[Admin] = []

    def admin(self, number: int, **security: Any) -> Admin:
        made = Admin(self._c.node(number).http, security=Security(**security), **self._c.ports)
        self._made.append(made)
        return made

    async def close(self) -> None:
        for each in self._made:
            await each.close()

    async def make(self, tenant: str) -> None:
        c = self._c
        await self.admin(1, api_key=KEY).call(CREATE_TENANT, id=tenant, name=tenant)
        await c.advance("1s")
        acting = self.admin(2, api_key=KEY, tenant=tenant)
        key = (await acting.call(CREATE_KEY, name="first", roles=["admin"])).key
        await c.advance("1s")
        await acting.call(CREATE_USER, name="anna", password=f"pencil of {tenant}", roles=["viewer"])
        await c.advance("1s")
        self.admins[tenant] = [self.admin(number, api_key=key) for number in (1, 2, 3)]
        for number, one in enumerate(self.admins[tenant], 1):
            await one.create_topic(f"secret-of-{tenant}-{number}", partitions=1)
            await c.advance("1s")
        with pytest.raises(HttpRefused, match="not allowed"):
            await self.admin(3, user=f"{tenant}~anna", password=f"pencil of {tenant}").create_topic("refused")
        with pytest.raises(HttpRefused):
            await self.admin(2, user=f"{tenant}~anna", password="wrong").call(DESCRIBE_TOPIC, topic="orders")


def test_a_tenant_is_told_its_own_entries_of_all_nodes_and_nothing_else(tmp_path: Path) -> None:
    first_key = tmp_path / "first.key"
    first_key.write_text(KEY)
    first_key.chmod(0o600)

    async def scenario(c: Cluster) -> None:
        await c.settled()
        both = TwoTenants(c)
        await both.make("acme")
        await both.make("bolt")
        await c.advance("2m")
        for tenant, other in (("acme", "bolt"), ("bolt", "acme")):
            for one in both.admins[tenant]:
                trail = await one.call(READ_AUDIT)
                assert {each.tenant for each in trail.entries} == {tenant}
                assert not [each for each in trail.entries if other in f"{each.resource} {each.principal}"]
                assert KEY.split("_")[1] not in str(trail.entries), "who of the operators it was is not told"
                _check_told(trail)
        everything = (await both.admin(1, api_key=KEY).call(READ_AUDIT, limit=1000)).entries
        assert {each.tenant for each in everything} == {"default", "acme", "bolt"}
        assert "User:acme~anna" in {each.principal for each in everything}
        assert len([each for each in everything if each.operation == "create_tenant"]) == 4
        of_anna = await both.admins["acme"][0].call(READ_AUDIT, principal="User:anna")
        assert [each.operation for each in of_anna.entries] == ["create_topic", "create_topic", "create"]
        acting = both.admin(1, api_key=KEY, tenant="bolt")
        assert {each.tenant for each in (await acting.call(READ_AUDIT)).entries} == {"bolt"}
        await both.close()

    cluster(nodes=3, authentication=Authentication.ON, bootstrap_key_file=first_key).run(scenario)


def _check_told(trail: AuditTrail) -> None:
    told = [(each.principal.partition(":")[0], each.operation, each.outcome, each.node) for each in trail.entries]
    assert [each for each in told if each[2] == "done"] == [
        ("operator", "create_key", "done", 2),
        ("operator", "create_user", "done", 2),
        *(("Key", "create_topic", "done", number) for number in (1, 2, 3)),
    ]
    assert ("anna", "login", "failed", 2) in told
    assert ("User", "create", "refused", 3) in told
    assert all(each.hash_ok for each in trail.entries)
    assert trail.not_answered == []


def test_a_tenant_walks_through_its_trail_and_is_not_told_how_much_others_do(tmp_path: Path) -> None:
    first_key = tmp_path / "first.key"
    first_key.write_text(KEY)
    first_key.chmod(0o600)

    async def walk(admin: Admin, node: int) -> list[tuple[int, int, str]]:
        """In pages of two."""
        found: list[tuple[int, int, str]] = []
        following = 0
        while True:
            page = await admin.call(READ_AUDIT, node=node, offset=following, limit=2)
            found += [(each.offset, each.change, each.resource) for each in page.entries]
            (trail,) = page.trails
            if not page.entries:
                assert (trail.next_offset, trail.start_offset) == (following, 0)
                return found
            following = trail.next_offset

    async def scenario(c: Cluster) -> None:
        await c.settled()
        both = TwoTenants(c)
        await both.make("acme")
        await both.make("bolt")
        await c.advance("2m")
        acme = both.admins["acme"][0]
        before = {node: await walk(acme, node) for node in (1, 2, 3)}
        told = [each for found in before.values() for each in found]
        newest = (await acme.call(READ_AUDIT, limit=1000)).entries
        assert {each[0] for each in told} == {each.offset for each in newest}
        assert [each[2] for each in before[3] if "secret-of" in each[2]] == ["/topics secret-of-acme-3"] * 2
        for found in before.values():
            begun = {offset for offset, change, _ in found if change == -1}
            assert {change for _, change, _ in found if change != -1} <= begun, "an outcome names its beginning"
        assert min(each[0] for each in told) > 1_000_000, "no count is so large"
        for number in range(5):
            await both.admins["bolt"][0].create_topic(f"more-{number}", partitions=1)
        await c.advance("2m")
        assert {node: await walk(acme, node) for node in (1, 2, 3)} == before
        ends = [(await acme.call(READ_AUDIT, node=1)).end_offset for _ in range(2)]
        assert ends[0] == ends[1]
        await both.close()

    cluster(nodes=3, authentication=Authentication.ON, bootstrap_key_file=first_key).run(scenario)
