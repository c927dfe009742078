"""The audit trails of a closed cluster, asked for through any node."""

from pathlib import Path

import pytest

from goqueue.client import Admin, Security
from goqueue.client.http import HttpRefused
from goqueue.node.values import Authentication
from goqueue.testing import Cluster, cluster
from goqueue.wire.rest.operations.audit import READ_AUDIT

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
