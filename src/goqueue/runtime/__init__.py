"""Machines on ledgers: what a machine decides is stored before anybody is told, and rebuilds it after a restart."""
