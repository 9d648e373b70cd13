"""Leading eigenvectors of a centred Gram matrix: the problem, methods for it, their certificate."""
