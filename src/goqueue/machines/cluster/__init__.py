"""The rules of a cluster as functions: where copies are placed, who leads, and what each change compares."""
