"""Schema formats: one file for what a schema says, one for what may become of it, each by the format's own rules."""
