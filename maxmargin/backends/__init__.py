"""Where dense, sparse and device data differ, and nowhere else.

A kernel reaches a backend as a :class:`~maxmargin.backends.program.Program`: a few primitives
(products, distances) and a postfix programme over their values. A backend runs it tile by tile.
"""
