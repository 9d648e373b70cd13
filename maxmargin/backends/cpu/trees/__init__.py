"""Compiled loops of decision trees: columns in codes, tests and their scores, growth, descent."""
