"""Queue reads: receive, settle, leases, replay, lag."""
