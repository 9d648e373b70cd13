"""Methods for the dual problems of kernel machines, one file each."""
