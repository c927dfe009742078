"""Deliveries: what queue groups know of a partition. Commands come in, facts are decided and applied."""
