"""The updates of a perceptron, in passes over the rows or one at a time."""
