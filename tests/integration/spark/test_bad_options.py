import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession


def test_a_wrong_option_is_one_line_and_no_stack(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException) as told:
        spark.read.format("goqueue").option("subscrib", "orders").option("minPartitions", "few").load()
    said = str(told.value)
    assert "there is no option 'subscrib'; did you mean subscribe?" in said
    assert "minPartitions: 'few' is no whole number above 0" in said
    assert "Traceback" not in said
