"""The broker as one operation of one client may use it."""
