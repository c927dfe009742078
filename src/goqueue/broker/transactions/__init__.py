"""Transactions: coordinator commands, markers, and steps for clients without a transactional producer."""
