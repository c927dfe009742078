"""The data plane, one file per use case. Every door comes in here, so each check and each count stands in one place."""
