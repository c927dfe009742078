"""The nouns and errors that every room shares. Pure: imports nothing of ours."""
