"""A fault of ours with one copy costs the others nothing."""

from typing import Any

import pytest

from goqueue.replica.replica import Replica
from goqueue.testing.simulation import Simulation
from tests.unit.cluster.copying_hosts import placed
from tests.unit.cluster.test_copying import run, three, until


def test_a_fault_with_one_copy_ends_the_copying_of_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(sim: Simulation) -> None:
        one, two, _ = await three(sim, lambda book: placed(book, 1, 0, (1, 2), (1, 2), partitions=20))
        await until(sim, lambda: all(one.noted(2, number) == 0 for number in range(20)))
        append, faults = Replica.append_copied, list[Replica]()

        def append_or_fail(self: Replica, *given: Any) -> None:
            if self is two.replica(7) and not faults:
                faults.append(self)
                raise RuntimeError("a bug")
            append(self, *given)

        monkeypatch.setattr(Replica, "append_copied", append_or_fail)
        for number in range(20):
            await one.append(b"x", partition=number)
        await until(sim, lambda: all(one.replica(number).high_watermark == 1 for number in range(20)))
        assert faults == [two.replica(7)]

    run(scenario)
