"""One log on one disk: the staircase disk -> index -> segment -> log, each step with its test beside it."""
