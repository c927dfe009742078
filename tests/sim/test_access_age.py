"""A node that is cut off from etcd does not know who was taken out: it goes on as before, or lets nobody in."""

from pathlib import Path
from typing import Any

import pytest

from goqueue.client import Admin, Producer, Security
from goqueue.client.http import HttpRefused
from goqueue.node.values import Authentication
from goqueue.testing import Cluster, cluster
from goqueue.wire.rest.operations.accounts import CREATE_USER

KEY = f"gqk_k0123456789abcdef_{'5a' * 32}"


def closed(tmp_path: Path, **settings: Any) -> Any:
    first_key = tmp_path / "first.key"
    first_key.write_text(KEY)
    first_key.chmod(0o600)
    return cluster(nodes=3, authentication=Authentication.ON, bootstrap_key_file=first_key, **settings)


@pytest.mark.parametrize("limit_ms", [0, 60_000])
def test_a_node_without_etcd_lets_nobody_in_when_what_it_knows_is_too_old(tmp_path: Path, limit_ms: int) -> None:
    async def scenario(c: Cluster) -> None:
        await c.settled()
        lost, well = (Admin(c.node(number).http, security=Security(api_key=KEY), **c.ports) for number in (1, 2))
        await well.create_topic("orders", partitions=3)
        await well.call(CREATE_USER, name="anna", password="pencil", roles=["producer"])
        await c.advance("5m")
        assert c.node(1).broker.cluster.access_age_s() == 0, "however long nothing was changed"
        c.cut(1, "etcd")
        await c.advance("30s")
        assert 20 < c.node(1).broker.cluster.access_age_s() < 40
        assert await lost.topics() == ["orders"], "an outage of metadata does not stop the data"
        await c.advance("60s")
        assert c.node(1).broker.cluster.access_age_s() > 60
        assert c.node(2).broker.cluster.access_age_s() == 0
        if limit_ms:
            with pytest.raises(HttpRefused, match="has not reached the metadata store for") as refused:
                await lost.topics()
            assert refused.value.status == 503
            async with Producer(c.kafka, security=Security(user="anna", password="pencil"), **c.ports) as late:
                for number in range(20):
                    await late.send("orders", b"%d" % number)  # it comes in through the others
        else:
            assert await lost.topics() == ["orders"]
        assert await well.topics() == ["orders"]
        c.heal()
        await c.advance("30s")
        assert c.node(1).broker.cluster.access_age_s() == 0
        assert await lost.topics() == ["orders"]
        await lost.close()
        await well.close()

    closed(tmp_path, access_age_ms_max=limit_ms).run(scenario)
