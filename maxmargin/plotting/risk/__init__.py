"""What an error costs, and what a choice of parameters brings: losses and searches."""
