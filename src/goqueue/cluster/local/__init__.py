"""Metadata of a cluster whose members run on one machine: their supervisor keeps it, they reach it over a socket."""
