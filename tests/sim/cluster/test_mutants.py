"""A simulation that finds nothing says little unless it finds what is put there: each broken rule of the table is
found, and what finds it holds while the rule does."""

from itertools import chain

import pytest

from tests.layers import in_layers
from tests.sim.cluster.table import TABLE, Row
from tests.sim.cluster.world import World

SEEDS = range(1, 41)
BY_SEEDS = [row for row in TABLE if row.found_by is None]
BY_HAND = [row for row in TABLE if row.found_by is not None]


def find(first_seed: int) -> int | None:
    for seed in chain([first_seed], SEEDS):
        try:
            World(seed).run()
        except Exception:  # noqa: BLE001  whatever it is, it is a finding
            return seed
    return None


@pytest.mark.parametrize("row", in_layers(BY_SEEDS, first=4), ids=lambda row: row.rule)
def test_a_broken_rule_is_found_by_storms(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as mutated:
        row.mutate(mutated)
        seed = find(row.first_seed)
    assert seed is not None
    World(seed).run()  # it was the mutant that was found


@pytest.mark.parametrize("row", in_layers(BY_HAND, first=8), ids=lambda row: row.rule)
def test_a_broken_rule_is_found_by_what_was_written_for_it(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    assert row.found_by is not None
    row.found_by()
    with monkeypatch.context() as mutated:
        row.mutate(mutated)
        with pytest.raises((AssertionError, pytest.fail.Exception)):
            row.found_by()


def test_every_row_is_a_rule_of_its_own() -> None:
    assert len({row.rule for row in TABLE}) == len({row.mutate for row in TABLE}) == len(TABLE)
