"""What clients do while nodes are troubled, one file for each promise. Each workload writes down all it asks."""
