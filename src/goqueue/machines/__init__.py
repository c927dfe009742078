"""Pure state machines, one package each: `decide` reads, `apply` writes, and nothing here knows a clock, a disk or a
socket.
"""
