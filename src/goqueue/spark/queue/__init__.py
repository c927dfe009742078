"""Spark as a pool of workers: a micro-batch is a number of leases, and its offset names them."""
