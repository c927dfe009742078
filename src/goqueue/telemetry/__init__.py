"""How a process tells what it does: structured logs now, metrics and traces with the doors."""
