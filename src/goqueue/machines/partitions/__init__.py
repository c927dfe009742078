"""What one partition remembers of its producers and transactions. It is rebuilt from the partition's own log."""
