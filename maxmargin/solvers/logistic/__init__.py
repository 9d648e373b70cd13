"""Kernel logistic regression: the problem, Newton's method for it, and its certificate."""
