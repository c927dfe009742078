"""Names in pages: always sorted, each once, at a cost that does not grow with how many there are."""

from hypothesis import given
from hypothesis import strategies as st

from goqueue.machines import name_table
from goqueue.machines.name_table import NameTable, page_of_all
from tests.steps import count_steps

NAMES = st.text(max_size=3)
CHANGES = st.lists(st.tuples(st.sampled_from(["set", "delete", "pop", "setdefault"]), NAMES), max_size=80)


def changed(changes: list[tuple[str, str]]) -> tuple[NameTable[int], dict[str, int]]:
    table: NameTable[int] = NameTable()
    model: dict[str, int] = {}
    for number, (how, name) in enumerate(changes):
        if how == "set":
            table[name] = model[name] = number
        elif how == "setdefault":
            assert table.setdefault(name, number) == model.setdefault(name, number)
        elif how == "pop":
            assert table.pop(name, None) == model.pop(name, None)
        elif name in model:
            del table[name], model[name]
    return table, model


@given(CHANGES, NAMES, st.integers(1, 5))
def test_a_page_has_the_next_names_in_order(changes: list[tuple[str, str]], after: str, count: int) -> None:
    chunk_max, name_table._CHUNK_MAX = name_table._CHUNK_MAX, 4
    try:
        table, model = changed(changes)
    finally:
        name_table._CHUNK_MAX = chunk_max
    assert table == model
    assert table.page(None, 1000) == sorted(model)
    assert table.page(None, count) == sorted(model)[:count]
    assert table.page(after, count) == [name for name in sorted(model) if name > after][:count]


@given(CHANGES, CHANGES, NAMES, st.integers(1, 5))
def test_a_page_of_several_tables_has_each_name_once(
    some: list[tuple[str, str]], others: list[tuple[str, str]], after: str, count: int
) -> None:
    (one, model), (other, more) = changed(some), changed(others)
    wanted = [name for name in sorted(model.keys() | more.keys()) if name > after]
    assert page_of_all((one, other), after, count) == wanted[:count]


def test_to_add_remove_and_page_costs_the_same_among_few_and_among_many() -> None:
    costs = []
    for size in (100, 20_000):
        table: NameTable[int] = NameTable()
        for number in range(size):
            table[f"{number:06}"] = number

        def happen(table: NameTable[int] = table) -> None:
            table["000050x"] = 1
            table.page("000049", 10)
            del table["000050x"]

        costs.append(count_steps(happen))
    assert costs[1] <= costs[0] + 20
