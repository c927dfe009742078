import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from goqueue.spark.errors import SparkError
from goqueue.spark.options import Options, Part
from goqueue.spark.read.columns import check_schema, schema_of


def of(**options: str) -> str:
    schema = schema_of(Options(options, Part.BATCH))
    check_schema(schema)
    return schema.simpleString()


def test_the_usual_columns_are_those_of_sparks_kafka_source() -> None:
    usual = (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int"
    )
    assert of() == usual + ">"
    assert of(includeHeaders="true") == usual + ",headers:array<struct<key:string,value:binary>>>"


def test_columns_are_chosen_by_name() -> None:
    assert of(columns="offset, value,priority") == "struct<offset:bigint,value:binary,priority:string>"


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("valeu", "there is no column 'valeu'; did you mean value?"),
        ("x", "there is no column 'x'; there are key, value, topic"),
        ("value,key,value", "columns names value more than once"),
    ],
)
def test_wrong_columns(columns: str, said: str) -> None:
    with pytest.raises(SparkError, match=said):
        of(columns=columns)


def test_a_schema_must_fit() -> None:
    given = StructType(
        [
            StructField("value", StringType()),
            StructField("key", schema_of(Options({}, Part.BATCH))["key"].dataType, nullable=False),
            StructField("offset", LongType(), nullable=False),
        ]
    )
    with pytest.raises(SparkError) as told:
        check_schema(given)
    assert str(told.value) == ("column value is binary, not string: cast it after the read; column key may be null")
