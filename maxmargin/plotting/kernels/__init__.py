"""Kernels and what is made of them: matrices, curves, processes, words and places of sequences."""
