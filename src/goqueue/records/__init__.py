"""The batch codec: Kafka record batches v2, read and written without a broker around them. Pure."""
