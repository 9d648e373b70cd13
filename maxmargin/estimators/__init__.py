"""What makes an answer an estimator: parameters, data, warnings, kernels, expansions, tensors."""
