"""Topics as tables of Iceberg: Spark reads and writes files, PyIceberg commits them, each record exactly once."""
