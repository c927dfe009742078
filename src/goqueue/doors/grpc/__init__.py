"""The gRPC door: the services of `api/proto`, one file each. Translation only."""
