"""The messages of the gRPC door, for whoever speaks it: server and client. Written by `make protos`."""
