"""Delayed records and schedules: kept, and published when due."""
