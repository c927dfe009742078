"""Cases of one test in both layers: `make test` runs the first of them, `make test-rest` the others."""

from collections.abc import Sequence
from typing import Any

import pytest


def in_layers(cases: Sequence[Any], first: int) -> list[Any]:
    """For `parametrize`: the `first` cases in the first layer, the others in the second."""
    return [*cases[:first], *(pytest.param(case, marks=pytest.mark.second_layer) for case in cases[first:])]
