"""The messages, a file per family, in the notation of `notation`. Names of fields are the protocol's own."""
