"""Protocols, and nothing but protocols: a door turns bytes into calls of the broker and its answers into bytes."""
