"""One file for each resource; `table` has them all."""
