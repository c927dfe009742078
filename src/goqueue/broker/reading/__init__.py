"""Stream reads: fetch, follow, scans over part of a log, filters."""
