"""Methods for regularised risks over the rows of a design, one file each."""
