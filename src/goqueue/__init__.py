"""GoQueue: one durable, partitioned log, read as a stream and as a queue."""
