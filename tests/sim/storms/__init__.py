"""Programs that use a simulated cluster while it is in trouble, each for one kind of promise. They write down what they
asked and were told, as those of `tools.nemesis` do, and the same checker judges it.
"""
