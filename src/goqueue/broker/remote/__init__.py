"""What is asked of other nodes of the cluster: commands to their coordinators, and appends to partitions they lead."""
