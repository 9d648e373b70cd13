"""Kernels and what is made of them: Gaussian processes, words and places of sequences."""
