"""Message tracing: what happened to a record, kept and looked up, and why it is not delivered."""
