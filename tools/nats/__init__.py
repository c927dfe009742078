"""A real NATS server to be compared with, built from its sources and kept."""
