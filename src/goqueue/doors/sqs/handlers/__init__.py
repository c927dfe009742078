"""One file per group of actions."""
