"""Tables and facts, as a terminal shows them."""

import io

import pytest

from goqueue.cli.output import Output, padded, width_of


@pytest.mark.parametrize(
    ("text", "columns"), [("abc", 3), ("注文", 4), ("naïve", 5), ("e\u0301t", 2), ("🍎x", 3), ("", 0)]
)
def test_a_letter_takes_the_columns_that_a_terminal_gives_it(text: str, columns: int) -> None:
    assert width_of(text) == columns
    assert width_of(padded(text, 9)) == width_of(padded(text, 9, to_the_right=True)) == 9


def test_columns_stay_aligned_whatever_is_in_them() -> None:
    stream = io.StringIO()
    rows = [["注文", "1"], ["orders", "20"], ["e\u0301t\u00e9", "300"]]
    Output("table", stream).table(["NAME", "COUNT"], rows, [False, True])
    lines = stream.getvalue().splitlines()
    assert {width_of(line) for line in lines} == {len("orders  COUNT")}
