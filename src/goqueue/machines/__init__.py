"""Pure state machines, one file each: `decide` reads, `apply` writes, and nothing here knows a clock, a disk or a
socket.
"""
