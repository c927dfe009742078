"""Dead letters: written, listed, redriven, moved."""
