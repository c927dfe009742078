"""The schema registry, and the formats that it understands."""
