"""One node's copy of a partition: a log, and what must be known about its producers and transactions to append and
read it.
"""
