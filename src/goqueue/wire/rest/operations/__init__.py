"""Every operation of the HTTP API, a module for each noun; `table` has them all."""
