"""Jobs that move, keep and explain the data of topics: ordinary PySpark, each to be read, copied and submitted."""
