"""Pictures of kernels: matrices, curves on a line, basis functions, functions drawn from them."""
