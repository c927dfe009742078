"""What a process gets from its machine besides time and disk, as ports: the real ones, and what a test must bring."""
