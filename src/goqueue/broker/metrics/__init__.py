"""Metrics: read from the state of the broker when they are asked for."""
