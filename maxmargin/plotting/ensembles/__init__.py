"""What ensembles are made of, and how they come about."""
