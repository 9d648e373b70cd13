"""Kernel machines on rows that lie in many places, exactly: chunking over the partitions."""
