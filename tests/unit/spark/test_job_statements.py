"""A file of SQL is taken apart as Spark would read it."""

import pytest

from goqueue.spark.jobs.statements import Insert, insert_of, statements


def test_semicolons_end_statements_and_nothing_else_does() -> None:
    text = """
    -- a comment; with a semicolon
    SET a = 'one;two'; /* and; another */
    SELECT "x;y", `odd;name`, 'it''s; so' FROM t
    ;;
    SELECT 1 -- the end
    """
    assert statements(text) == ["SET a = 'one;two'", "SELECT \"x;y\", `odd;name`, 'it''s; so' FROM t", "SELECT 1"]


@pytest.mark.parametrize(
    ("statement", "insert"),
    [
        ("INSERT INTO big SELECT * FROM orders", Insert("big", "", "", "SELECT * FROM orders")),
        (
            "insert into `orders.big-ones` with a as (select 1) select * from a",
            Insert("orders.big-ones", "", "", "with a as (select 1) select * from a"),
        ),
        ("INSERT INTO parquet.`lake/big` SELECT 1", Insert("", "parquet", "lake/big", "SELECT 1")),
        ("INSERT INTO TABLE big\nSELECT 1", Insert("big", "", "", "SELECT 1")),
    ],
)
def test_what_an_insert_writes_to(statement: str, insert: Insert) -> None:
    assert insert_of(statement) == insert


def test_what_is_no_insert_is_left_to_spark_and_overwriting_is_refused() -> None:
    assert insert_of("CREATE TEMP VIEW v AS SELECT 'INSERT INTO x SELECT 1'") is None
    with pytest.raises(ValueError, match="INSERT INTO"):
        insert_of("INSERT OVERWRITE big SELECT 1")
