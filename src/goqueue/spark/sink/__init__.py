"""DataFrames as messages, each once: see `docs/spark-sink.md` and ADR 0019."""
