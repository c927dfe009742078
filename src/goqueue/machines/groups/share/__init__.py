"""Share groups of KIP-932: their members and assignments. What they have read is a matter of deliveries."""
