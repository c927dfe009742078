"""The `goqueue` command: it reads what a person typed, and answers in words and exit codes."""
