"""The control plane: where a cluster's metadata is kept and who may change it. One node keeps it itself."""
