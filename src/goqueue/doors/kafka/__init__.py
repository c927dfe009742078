"""The Kafka door: unmodified Kafka clients come in here."""
