"""Groups, their members and their lag."""
