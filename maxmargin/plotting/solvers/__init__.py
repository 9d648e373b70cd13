"""The way of a fit, step by step."""
