"""Linear machines: one idea of the lecture in each file."""
