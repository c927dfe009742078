"""Brokers of others beside ours: how each is started and spoken to, what they are given to do, and what is told."""
