"""Topics as they exist on this node: created, changed, compacted and removed."""
