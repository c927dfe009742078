"""The queue's own state as tables: what is given up, travels, waits, is held, and how far groups are."""
