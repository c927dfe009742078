"""What looks after leaders ends when its node stops, whatever comes in the same moment."""

import asyncio
from typing import cast

import pytest

from goqueue.cluster import handing_over
from goqueue.cluster.handing_over import HandingOver, InSync
from goqueue.cluster.store import Store
from goqueue.model.topics import Image
from goqueue.replica.replica import Replica
from goqueue.replica.replicas import Replicas
from goqueue.testing.virtual_clock import VirtualClock
from tests.unit.testing.loops import turn

TURNS = 12


class NoReplicas:
    def hosts(self) -> list[Replica]:
        return []


def balancer() -> HandingOver:
    nothing = cast(Store, None), Image, cast(Replicas, NoReplicas()), cast(InSync, None)
    return HandingOver(*nothing, VirtualClock())


async def _ends(turns: int) -> bool:
    """Somebody makes topics all the time, and the stop comes after so many turns of the loop."""
    balancing = balancer()
    task = asyncio.create_task(balancing.keep_balanced())
    for _ in range(turns):
        balancing.image_changed()
        await turn()
    task.cancel()
    for _ in range(TURNS):
        await turn()
    return task.cancelled()


@pytest.mark.parametrize("turns", range(TURNS))
def test_balancing_ends_though_the_metadata_changes_as_it_is_told_to(
    turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handing_over, "BALANCE_S_MIN", 0)
    assert asyncio.run(_ends(turns))
