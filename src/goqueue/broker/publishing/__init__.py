"""From a batch or a record to an acknowledged offset: checks, deduplication, validation, waiting."""
