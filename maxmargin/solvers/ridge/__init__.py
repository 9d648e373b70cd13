"""Methods for the linear system of kernel ridge regression, and for its whole path."""
