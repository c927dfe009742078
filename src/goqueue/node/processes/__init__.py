"""One machine, all its cores: a supervisor that keeps the metadata, and members that share the work."""
