"""Delays: records that wait until they are due, and recurring schedules."""
