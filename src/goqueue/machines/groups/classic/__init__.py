"""Groups of the classic protocol (JoinGroup and SyncGroup)."""
