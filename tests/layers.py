"""Cases of one test in both layers: `make test` runs the first of them, `make test-rest` the others."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine


def in_layers(cases: Sequence[Any], first: int) -> list[Any]:
    """For `parametrize`: the `first` cases in the first layer, the others in the second."""
    return [*cases[:first], *(pytest.param(case, marks=pytest.mark.second_layer) for case in cases[first:])]


def rows_in_layers(rows: Sequence[tuple[Any, ...]], first: int) -> list[Any]:
    """Likewise, where each case has several arguments."""
    return [*rows[:first], *(pytest.param(*row, marks=pytest.mark.second_layer) for row in rows[first:])]


half_in_each_layer = pytest.mark.parametrize("half", in_layers(range(2), first=1))
"""Of a random test: with so many examples in the first layer, and with as many others in the second."""


def more_often(machine: type[RuleBasedStateMachine], walks: settings) -> Any:
    """The random walks of a test once more, for the second layer."""
    again = type(f"More{machine.__name__}", (machine,), {"__module__": machine.__module__})
    case: Any = pytest.mark.second_layer(again.TestCase)  # type: ignore[attr-defined]  # its class makes it
    case.settings = walks
    return case
