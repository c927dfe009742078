"""Proof on real processes: workloads write down what they asked and were told, faults are done to nodes, and checkers
judge what was written down.
"""
