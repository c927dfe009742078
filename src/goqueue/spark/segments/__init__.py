"""`read = segments`: the sealed segments of a data directory, or of a copy of it, read in parallel without a broker."""
