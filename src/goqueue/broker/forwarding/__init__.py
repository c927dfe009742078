"""What belongs to other nodes of the cluster: found, and asked of them."""
